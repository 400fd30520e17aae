// Layouts of a model on a machine: which are possible, a bound on each one's time, and the prices of those that may
// win.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/train/step_pricing.h"

namespace trellis::tools {

struct StepLayout {
  train::StrategyConfig strategy;
  train::Recompute recompute = train::Recompute::none;
  std::size_t micro_batch = 1;
};
std::string words_of(const StepLayout&);  // "T=8 P=4 V=1 micro-batch 1 SP ZeRO-1 selective"

struct PricedLayout {
  StepLayout layout;
  sim::Time bound = 0;  // computation alone, and the pipeline's filling and draining
  sim::Time time = 0;   // 0: the bound or memory rules it out, or it was not reached
  double memory = 0;    // the most of a rank, in bytes; where it was not priced, what it needs at least
  bool fits = false;
  double mfu = 0, exposed = 0, bubble = 0;  // parts of the step, of the class that waits least
};

struct LayoutSearch {
  std::vector<PricedLayout> layouts;  // that are possible; those priced first, the fastest that fits first
  double memory_of_rank = 0;
  std::size_t priced = 0, too_large = 0;  // the latter do not fit, and are not priced
  bool stopped = false;

  const PricedLayout* best() const;                // that fits; null: none does, or none was reached
  std::vector<const PricedLayout*> front() const;  // no other is faster in less memory
};

// Every layout of the configuration's model with its global batch on all ranks: tensor sizes within a host, pipelines,
// chunks, micro-batches, sequence parallelism wherever there is a tensor axis, ZeRO-1, recomputation. `stopped` is
// asked between layouts, with the number that is done and of all.
LayoutSearch search_layouts(const train::Config&, const sim::Machine&, const sim::StepOptions&,
                            const std::function<bool(std::size_t done, std::size_t of)>& stopped);

}  // namespace trellis::tools
