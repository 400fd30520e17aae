#include "train/layers/attention/accelerator_arrays.h"

#include "schedule/graph/attention_arrays.h"

namespace trellis::train {

std::vector<TensorId> accelerator_arrays(Writer& w, const schedule::OperationShape& core, DType type,
                                         PairArrays which) {
  std::vector<TensorId> arrays;
  if (core.flash) return arrays;
  for (const schedule::PairArray& a : schedule::pair_arrays)
    if (a.kept() == (which == PairArrays::kept))
      arrays.push_back(w.tensor(a.name, type, core.batch * core.rows, core.columns, Category::accelerator));
  return arrays;
}

}  // namespace trellis::train
