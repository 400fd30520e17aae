// Rows of a table by index: an embedding, the gradient of one; and an array's transposition.
#include <cmath>

#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

// Tiles go through the Tensor engine's array, and Scalar takes the results out of PSUM.
EngineTimes transposed(const OperationShape& s, const EngineRates& e) {
  EngineTimes t = passes_over(s, e, {.scalar = 1});
  const double tiles = std::ceil(static_cast<double>(s.rows) / e.lanes()) *
                       std::ceil(static_cast<double>(s.columns) / e.lanes()) * static_cast<double>(s.batch);
  t.tensor = e.tile_passes(tiles, e.lanes(), s.type);
  return t;
}

using Registered = OperationModel::Registered;
const Registered embedding(kind_of_passes("embedding", "rows of a table, by index", {}));
const Registered embedding_gradient(kind_of_passes("embedding_gradient", "adds rows to those of a table, by index",
                                                   {.vector = 1, .reads = 2, .flops = 1}));
const Registered transpose({.name = "transpose",
                            .summary = "rows become columns",
                            .extents = "rows x columns, batch times",
                            .work = transposed});

}  // namespace
}  // namespace trellis::sim
