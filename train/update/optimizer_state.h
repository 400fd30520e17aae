// What the optimizer keeps for each parameter, and which rows of it: all, or this data-parallel rank's with ZeRO-1.
#pragma once

#include <vector>

#include "train/config/config.h"
#include "train/layers/parameter.h"

namespace trellis::train {

struct OptimizerState {
  const Parameter* parameter = nullptr;
  TensorSlice slice;                                 // what this rank updates; of 0 rows, if its part is all padding
  std::size_t first_row = 0;                         // of the part, among the parameter's rows here
  std::size_t rows = 0;                              // of the part, with padding
  TensorId master = no_tensor;                       // f32; without masters the parameter itself is updated
  TensorId first = no_tensor, second = no_tensor;    // moments, f32; not all rules have two
  TensorId gradient = no_tensor;                     // the part's: the parameter's, or its sum over the ZeRO-1 group
  bool frozen() const { return parameter->frozen; }  // it has a slice, and nothing else
  std::size_t first_element() const { return first_row * parameter->slice.column_count; }
  std::size_t elements() const { return rows * parameter->slice.column_count; }
};

// In the order of the parameters.
std::vector<OptimizerState> make_states(Writer&, const Parameters&, const StepConfig&);

}  // namespace trellis::train
