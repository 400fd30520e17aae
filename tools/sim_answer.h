// What trellis sim found out, and how it says so: as text, as JSON, as a page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/choice.h"
#include "sim/interval.h"
#include "sim/price_timeline.h"
#include "tools/noise.h"
#include "tools/request_options.h"

namespace trellis::tools {

struct SimAnswer {
  std::string collective, era;
  std::string words;  // "all_reduce of 64 MiB"
  Asked chosen;
  sim::Choice choice;  // what it was chosen from; empty: it was asked for
  sim::Price price;
  sim::Interval interval;
  Noisy noisy;
  std::vector<sim::Phase> phases;  // where they were looked at
  std::string interrupted;         // what was left out for it; empty: nothing
  std::vector<std::string> notes;  // of what the timeline leaves out
  bool explain = false;
};

inline constexpr std::size_t most_compared = 3;  // algorithms that the best was preferred to
std::string sim_text(const SimAnswer&, const sim::Machine&);
std::string sim_json(const SimAnswer&, const sim::Machine&);
std::string way_words(const Asked&);               // as -a takes it: "torus@4x4x4*2"
std::string interval_words(const sim::Interval&);  // "3 us and 5 us, by ..., above all neuronlink.rate"
std::string sway_words(const sim::Sway&);          // "neuronlink.rate = 64 GB/s to 128 GB/s: 3 us to 5 us"
std::string bounds_words(const sim::Bounds&);      // those that there are
void put_interval(nlohmann::ordered_json&, const sim::Interval&);  // nothing where none is known

// HTML for the top of a report: the result beside its bounds, why it takes so long, its phases, and the machine with
// its links as they were used.
std::string sim_page(const SimAnswer&, const sim::Machine&, const sim::Run&);

}  // namespace trellis::tools
