// How a model may be laid out on all ranks of a machine.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/machine/machine.h"
#include "tools/train/step_pricing.h"

namespace trellis::tools {

struct StepLayout {
  train::StrategyConfig strategy;
  train::Recompute recompute = train::Recompute::none;
  std::size_t micro_batch = 1;
  AxisOrder order = AxisOrder::data_first;
};
std::string words_of(const StepLayout&);  // "T=8 P=4 V=1 1f1b micro-batch 1 SP ZeRO-1 selective"

train::StepConfig with(train::StepConfig, const StepLayout&);

struct PossibleLayouts {
  std::vector<StepLayout> layouts;
  std::string refusal;  // the first layout that is not possible, the plainest one, and why; empty: all are
};

// Every layout of the configuration's model with its global batch: tensor sizes within a host, pipelines, chunks, their
// schedules, micro-batches, sequence parallelism wherever there is a tensor axis, ZeRO-1, recomputation, how many ranks
// share out a model's experts, and how many share a sequence, at most `most_context`. The order of axes is not varied:
// it does not change what a rank computes.
PossibleLayouts layouts_of(const train::StepConfig&, train::Rank world, train::Rank host, train::Rank most_context = 1);

}  // namespace trellis::tools
