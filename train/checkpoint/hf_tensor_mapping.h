// Where Hugging Face's files have a parameter: under which name, and as which part of a larger tensor.
#pragma once

#include <string>
#include <vector>

#include "train/config/config.h"
#include "train/layers/parameter.h"

namespace trellis::train {

// A parameter's place in a tensor of Hugging Face: the parameter's row r is the tensor's row `first` + r / run x stride
// + r % run; transposed: its column of that number.
struct HfTensorMapping {
  std::string name;
  bool transposed = false;
  std::size_t run = 0, stride = 0, first = 0;  // run 0: row r is row r

  std::size_t row(std::size_t r) const { return run == 0 ? r : first + r / run * stride + r % run; }
  // The size of the parameter, given the size of their tensor.
  TensorSlice whole(const TensorSlice& theirs) const;
  TensorSlice theirs(const TensorSlice& whole) const;  // the size of their tensor, given the parameter's
};

HfTensorMapping hf_place(const StepConfig&, const std::string& parameter);

// The parameters that are in one of Hugging Face's tensors.
std::vector<std::string> parameters_of_hf(const StepConfig&, const std::string& theirs);

// The current form of a name: older files leave out a prefix, or say gamma and beta.
std::string hf_name_today(const StepConfig&, const std::string& theirs);

}  // namespace trellis::train
