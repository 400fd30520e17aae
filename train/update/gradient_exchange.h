// Sums gradients over data-parallel ranks while the backward pass still makes others. all_reduce divides by the number
// of ranks before it sums; with ZeRO-1, reduce_scatter sums, and the optimizer divides.
#pragma once

#include <vector>

#include "train/config/config.h"
#include "train/update/optimizer_state.h"

namespace trellis::train {

class GradientExchange {
 public:
  GradientExchange(const StepConfig&, const std::vector<OptimizerState>&);

  // Called when a gradient is complete on this rank. Sends a full bucket, overlapped with what is written next.
  void ready(Writer&, const Parameter&);
  // Sends what remains, then waits for everything. Gradients that are partial sums over the tensor axis, or shared by
  // stages, are summed first.
  void finish(Writer&, const std::vector<const Parameter*>& tied);

 private:
  using Pending = std::vector<std::size_t>;
  void flush(Writer&, Pending&);
  void add(Writer&, std::size_t, Pending&);
  std::size_t cap_;
  bool zero_;
  const std::vector<OptimizerState>& states_;
  std::vector<bool> sent_;
  Pending pending_, of_experts_;  // of_experts_ are summed over other ranks
  std::vector<int> tickets_;
};

// Bytes of a bucket: what the configuration says, else 512 MB of all_reduce, 130 MB of reduce_scatter, 65 with masters.
std::size_t bucket_bytes(const StepConfig&);

}  // namespace trellis::train
