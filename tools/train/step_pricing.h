// A training step laid out, proved and priced on a simulated machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedule/graph/graph.h"
#include "schedule/graph/memory.h"
#include "sim/cluster/workload/step_price.h"
#include "train/whole/step.h"

namespace trellis::tools {

struct PricedStep {
  train::Config config;
  train::MeshShape shape;
  schedule::ExecutionGraph graph;             // as it was laid out and priced
  sim::StepPrice price;                       // of the graph
  std::vector<sim::ClassTime> spent;          // of the whole step, by class
  sim::Time time = 0, low = 0, high = 0;      // of the whole step; forever: it was stopped
  std::size_t micro_batches = 1, priced = 1;  // of the step; of the graph: a pipeline's steady state repeats
  std::vector<schedule::PeakMemory> memory;   // by class
  double memory_of_rank = 0;                  // that the machine has, in bytes
  double flops = 0;                           // of all ranks: the model's own, recomputation left out
  double peak = 0;                            // FLOP/s of all ranks' Tensor engines in 16 bits

  std::size_t sequences() const { return config.global_batch_size; }  // of a step
  std::size_t tokens() const { return sequences() * config.seq_length; }
  double mfu() const { return flops / (peak * sim::in_seconds(time)); }
  bool fits() const;
  const schedule::PeakMemory& most_memory() const;
};

// A step on a machine, to be priced with several factors: it is laid out, proved, and its exchanges simulated, once.
class StepOnMachine {
 public:
  // Throws invalid_argument where the configuration, the machine and the number of ranks do not fit each other, and
  // logic_error where the step is refuted. `whole`: all micro-batches are laid out, however many there are.
  StepOnMachine(const train::Config&, train::Rank world, const sim::Machine&, const sim::StepOptions& = {},
                bool whole = false);

  const sim::StepFactors& factors() const { return factors_; }  // those of the machine's figures
  double flops() const;                                         // of all ranks: the model's own, recomputation left out
  sim::Time time(const sim::StepFactors&);
  PricedStep price();

 private:
  struct Laid;
  void learn();
  train::Config config_;
  const sim::Machine& machine_;
  sim::StepFactors factors_;
  std::size_t micro_batches_ = 1;
  double rounds_ = 0;                        // of the steady state, beyond those laid out first
  std::vector<std::shared_ptr<Laid>> laid_;  // with fewer micro-batches, and with a round more; or the whole step alone
};

// What bounds a step, of a layout that is neither proved nor priced. Classes are in the order of their pipeline ranks.
struct StepNeeds {
  std::vector<sim::Time> computation;  // of each class, in all of its micro-batches, without the update
  std::vector<double> memory;          // of each class, in bytes
};
StepNeeds needs_of(const train::Config&, train::Rank world, const sim::Machine&, const sim::StepOptions& = {});

PricedStep price_of(const train::Config&, train::Rank world, const sim::Machine&, const sim::StepOptions& = {},
                    bool whole = false);

}  // namespace trellis::tools
