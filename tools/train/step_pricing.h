// A training step laid out, proved and priced on a simulated machine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/graph/execution_graph.h"
#include "schedule/graph/peak_memory.h"
#include "sim/cluster/answer/noise.h"
#include "sim/cluster/workload/goodput.h"
#include "sim/cluster/workload/step_price.h"
#include "train/whole/compact_step.h"

namespace trellis::tools {

// Which axis varies faster over the machine's ranks, after the tensor axis.
enum class AxisOrder : std::uint8_t { data_first, pipeline_first };

struct StepPricingOptions {
  bool whole = false;  // all micro-batches are laid out, however many there are
  bool check = true;   // also lays out each class's other ranks, and compares them: as in compact_step()
  AxisOrder order = AxisOrder::data_first;
};

struct PricedStep {
  train::StepConfig config;
  train::MeshShape shape;
  schedule::ExecutionGraph graph;                   // as it was priced
  sim::StepPrice price;                             // its time is forever if it was stopped
  std::size_t micro_batches = 1, laid_out = 1;      // micro-batches left out are alike
  std::vector<schedule::PeakMemory> memory;         // by class
  double memory_of_rank = 0;                        // bytes that the machine has for a rank
  double flops = 0;                                 // of all ranks: the model's own, recomputation left out
  double peak = 0;                                  // FLOP/s of all ranks' Tensor engines in 16 bits
  sim::NoisyTimes noisy = {};                       // its time with random delays, where they were asked for
  std::optional<sim::GoodputInputs> failures = {};  // what its goodput depends on, where failures were asked for
  std::vector<sim::OperationKindTime> kinds = {};   // of the class that computes longest
  bool by_programs = false;                         // operations are timed by programs of sim/core where there are any

  std::size_t sequences() const { return config.global_batch_size; }  // of a step
  std::size_t tokens() const { return sequences() * config.seq_length; }
  double mfu() const { return flops / (peak * sim::in_seconds(price.time)); }
  bool fits() const;
  const schedule::PeakMemory& most_memory() const;
  std::uint32_t busiest() const;  // the class that computes longest
};

// A step on a machine, to be priced with several factors: it is laid out, proved, and its exchanges simulated, once.
class PreparedStep {
 public:
  // Throws invalid_argument where the configuration, the machine and the number of ranks do not fit each other, and
  // logic_error where the step is refuted.
  PreparedStep(const train::StepConfig&, train::Rank world, const sim::Machine&, const sim::StepOptions& = {},
               const StepPricingOptions& = {});

  const sim::StepFactors& factors() const { return factors_; }  // those of the machine's figures
  double flops() const;                                         // of all ranks: the model's own, recomputation left out
  sim::Time time(const sim::StepFactors&);
  PricedStep price();
  sim::NoisyTimes noisy(const sim::NoiseOptions&);

 private:
  struct Laid;
  train::StepConfig config_;
  const sim::Machine& machine_;
  sim::StepFactors factors_;
  std::shared_ptr<Laid> laid_;
};

PricedStep price_of(const train::StepConfig&, train::Rank world, const sim::Machine&, const sim::StepOptions& = {},
                    const StepPricingOptions& = {});

// What a step's bounds are computed from: the ranks' own times, and memory. Found from a step of fewer micro-batches
// that is neither proved nor priced.
struct StepBoundInputs {
  std::vector<sim::RankClassLocalTime> work;  // by class, of the micro-batches laid out
  std::size_t micro_batches = 1, laid_out = 1;
  double memory = 0;  // the most of a class, in bytes
};
StepBoundInputs needs_of(const train::StepConfig&, train::Rank world, const sim::Machine&,
                         const sim::StepOptions& = {});

}  // namespace trellis::tools
