// What the forward pass of attention's core keeps for the backward one, besides q, k, v and the result.
#pragma once

#include <vector>

#include "train/step/program.h"

namespace trellis::train {

struct KeptCore {
  TensorId logs = no_tensor;                      // with a context axis: of each row's sum of exponentials
  std::vector<std::vector<TensorId>> pairs = {};  // by operation of the core: its accelerator_arrays
};

}  // namespace trellis::train
