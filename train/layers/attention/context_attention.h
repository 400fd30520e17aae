// The attention core where the ranks of the context axis each have some of a sequence's positions: every rank's queries
// see the keys of all. As a ring: while a rank computes with the keys and values that it has, it passes them on to the
// next rank; their gradients travel around the ring behind them. Else keys and values are gathered, and their gradients
// reduce-scattered. Both join the parts in the order of the ring (partial_attention.h).
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "train/layers/attention/kept_core.h"
#include "train/layers/attention/partial_attention.h"
#include "train/step/writer.h"

namespace trellis::train {

struct ContextAttention {
  AttentionShape shape;  // its sequence: positions of a rank
  SequencePart own;
  bool ring = true, flash = false;
  double dropout = 0;

  // A micro-batch's q, k and v for this rank's positions, after rotary positions were applied.
  struct Inputs {
    TensorId q, k, v, starts;
    std::function<ProbabilityDropout(const StepInputs&)> drops;
  };
  // The core of this rank's queries and the keys of so many ranks, as an operation that is priced.
  schedule::OperationShape operation(const char* kind, DType, std::size_t parts) const;
  TensorId forward(Writer&, const Inputs&, KeptCore&) const;
  // dq, dk, dv
  std::array<TensorId, 3> backward(Writer&, const Inputs&, TensorId dout, TensorId out, const KeptCore&) const;

 private:
  struct Gathered {
    TensorId k, v;
  };
  struct Known {
    TensorId dout, logs, offsets;
    std::vector<std::vector<TensorId>> pairs;
  };
  PartialAttention part(Rank step) const;
  std::size_t ranks() const { return static_cast<std::size_t>(own.ranks); }
  double flops(std::size_t parts) const;
  Gathered gathered(Writer&, const Inputs&) const;
  int pass_on(Writer&, const char* name, const std::array<TensorId, 2>& from, std::array<TensorId, 2>& to) const;
  void attend(Writer&, const Inputs&, TensorId k, TensorId v, Rank first, Rank parts, TensorId out, KeptCore&) const;
  void differentiate(Writer&, const Inputs&, TensorId k, TensorId v, Rank first, Rank parts, const Known&,
                     const std::array<TensorId, 3>& to) const;
};

}  // namespace trellis::train
