// Layouts of a model on a machine: which are possible, a bound on each one's time, and the prices of those that may
// win.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/layouts/step_layout.h"

namespace trellis::tools {

struct PricedLayout {
  StepLayout layout;
  sim::Time bound = 0;  // the least time: computation, tensor exchanges, the pipeline's filling and draining
  sim::Time time = 0;   // 0: the bound or memory rules it out, or it was not reached
  double memory = 0;    // the most of a rank, in bytes; where it was not priced, what it needs at least
  bool fits = false;
  double mfu = 0;
  // Parts of the step's time, for the class of ranks that waits least: phases, exchanges of each axis, and "idle".
  std::map<std::string, double> parts = {};
  double exposed() const;
  double idle() const;
};

struct LayoutSearchResult {
  std::vector<PricedLayout> layouts;  // all possible ones: priced ones first, the fastest that fits first of all
  double memory_of_rank = 0, spread = 1;
  std::size_t priced = 0, too_large = 0, resumed = 0;  // too large: not priced; resumed: of those priced, known before
  bool stopped = false;
  std::string refusal = {};  // where no layout is possible: the plainest one, and why it is not

  const PricedLayout* best() const;                // the fastest that fits; null: none fits, or none was priced
  std::vector<const PricedLayout*> front() const;  // each of which no other beats in both time and memory
};

struct SearchControl {
  train::Rank most_context = 1;  // most ranks that may share a sequence
  // Returns whether to stop. Called between layouts, with the number that is done and the number of all.
  std::function<bool(std::size_t done, std::size_t of)> stopped;
  // known: whether a layout was priced before; it fills in the results. found: called with each layout that is priced.
  std::function<bool(PricedLayout&)> known = [](PricedLayout&) { return false; };
  std::function<void(const PricedLayout&)> found = [](const PricedLayout&) {};
};

// Searches all of layouts_of() on all ranks, in each order of axes.
LayoutSearchResult search_layouts(const train::StepConfig&, const sim::Machine&, const sim::StepOptions&,
                                  const SearchControl&);

// Tries the lowest and the highest value of each uncertain figure of the machine. Returns those with which another
// layout is faster than `first`, and by how much: "step.exposed.tensor = 0.42: X by 1.2%".
std::vector<std::string> reversals(const train::StepConfig&, const sim::Machine&, const sim::StepOptions&,
                                   const StepLayout& first, const std::vector<StepLayout>& others);

}  // namespace trellis::tools
