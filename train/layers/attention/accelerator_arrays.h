// What attention without flash holds on an accelerator (schedule/graph/attention_arrays.h). Nothing of it is here: the
// core computes a block of probabilities at a time, and again in the backward pass (attention_core.h).
#pragma once

#include <vector>

#include "train/step/writer.h"

namespace trellis::train {

// Which arrays of all pairs: those kept from the forward pass for the backward one, or those of the backward pass
// alone.
enum class PairArrays : std::uint8_t { kept, of_backward };

// The arrays of one operation of the core, to be listed with what it writes. With flash there are none.
std::vector<TensorId> accelerator_arrays(Writer&, const schedule::OperationShape& core, DType, PairArrays);

}  // namespace trellis::train
