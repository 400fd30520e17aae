// Where Hugging Face's files have a parameter: under which name, and as which part of a larger tensor.
#pragma once

#include <string>
#include <vector>

#include "train/config/config.h"
#include "train/layers/parameter.h"

namespace trellis::train {

// Row r of the whole parameter is their row `first` + r / run x stride + r % run; transposed: their column.
struct HfPlace {
  std::string name;
  bool transposed = false;
  std::size_t run = 0, stride = 0, first = 0;  // run 0: row r is row r

  std::size_t row(std::size_t r) const { return run == 0 ? r : first + r / run * stride + r % run; }
  // Of their tensor, which has so many rows and columns: how many rows and columns the parameter has.
  TensorSlice whole(const TensorSlice& theirs) const;
  TensorSlice theirs(const TensorSlice& whole) const;  // the other way round
};

HfPlace hf_place(const StepConfig&, const std::string& parameter);

// The parameters that one of their tensors has.
std::vector<std::string> parameters_of_hf(const StepConfig&, const std::string& theirs);

// A name as it is today: older files leave out a prefix, or say gamma and beta.
std::string hf_name_today(const StepConfig&, const std::string& theirs);

}  // namespace trellis::train
