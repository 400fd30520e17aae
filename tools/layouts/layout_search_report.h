// A search as text, JSON, and a picture of time and memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/layouts/layout_search.h"

namespace trellis::tools {

// A search on one machine, and what a step there costs.
struct SearchedMachine {
  std::string name;
  train::StepConfig config;
  LayoutSearchResult search;
  double hosts = 1;
  std::optional<double> price;         // dollars an hour, of a host
  std::vector<std::string> reversals;  // figures with which another layout is the fastest

  std::optional<double> cost(sim::Time) const;  // dollars of a step
};

std::string search_text(const SearchedMachine&, std::size_t most);
std::string search_json(const std::vector<SearchedMachine>&, std::size_t most);
// The best layout of each of several machines, and the machines that no other beats in both time and cost.
std::string machines_text(const std::vector<SearchedMachine>&);
// All priced layouts as points by memory and time, and the Pareto front: those that no other beats in both.
std::string front_picture(const std::vector<SearchedMachine>&);

}  // namespace trellis::tools
