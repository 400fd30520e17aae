// The results of trellis sim, and how they are reported: as text, JSON, and HTML.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/cluster/answer/collective_answer.h"

namespace trellis::tools {

struct SimReport {
  std::string collective;
  std::string words;  // "all_reduce of 64 MiB"
  sim::Rank ranks = 0;
  sim::CollectiveAnswer answer;
  std::vector<std::string> notes = {};  // what the timeline leaves out
  bool explain = false;
};

inline constexpr std::size_t most_compared = 3;  // alternatives that are printed beside the best
std::string sim_text(const SimReport&, const sim::Machine&);
std::string sim_json(const SimReport&, const sim::Machine&);
std::string config_words(const sim::AlgorithmConfig&);        // as -a takes it: "torus dims=4x4x4 channels=2"
std::string interval_words(const sim::UncertaintyInterval&);  // "3 us and 5 us, by ..., above all neuronlink.rate"
std::string sensitivity_words(const sim::Sensitivity&);       // "neuronlink.rate = 64 GB/s to 128 GB/s: 3 us to 5 us"
std::string bounds_words(const sim::LowerBounds&);            // latency, and those of the others that apply
// Configs that were not priced, with the reason: a line for all undecided ones, and one for each algorithm left out.
std::vector<std::string> left_out_words(const sim::AlgorithmChoice&);
std::string launch_words(const sim::CollectiveAnswer&);                    // "" where there is no software
std::string draw_words(const std::vector<sim::AlgorithmConfig>&);          // "rdh, mesh and 2 more"
void put_launches(nlohmann::ordered_json&, const sim::CollectiveAnswer&);  // also the configs that tie with the best
void put_interval(nlohmann::ordered_json&,
                  const sim::UncertaintyInterval&);  // writes nothing when there is no interval

// HTML for the top of a report: the result beside its lower bounds, the critical path, its phases, and the machine with
// the use of its links.
std::string sim_page(const SimReport&, const sim::Machine&);

}  // namespace trellis::tools
