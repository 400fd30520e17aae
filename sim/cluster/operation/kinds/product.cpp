// Products of matrices. Results leave PSUM through one pass of the Scalar engine, which adds a bias on the way.
#include "sim/cluster/operation/operation.h"

namespace trellis::sim {
namespace {

EngineTimes product(const OperationShape& s, const EngineRates& e) {
  const auto m = static_cast<double>(s.rows), n = static_cast<double>(s.columns), k = static_cast<double>(s.inner);
  const auto b = static_cast<double>(s.batch);
  const double in = bytes_of(s.type), out = bytes_of(s.result_type());
  const double read = s.inputs == 1 ? 0 : m * k * in, results = s.outputs == 0 ? 0 : s.accumulate ? 2 : 1;
  EngineTimes t;
  t.tensor = b * e.product(s.rows, s.columns, s.inner, s.type);
  if (results > 0) t.scalar = e.scalar(s.elements());
  if (s.accumulate && results > 0) t.vector = e.vector(s.elements(), s.result_type());
  t.memory = b * (e.memory(read, k * in) + e.memory(n * k * in, k * in) + e.memory(results * m * n * out, n * out));
  t.bytes = b * (read + n * k * in + results * m * n * out);
  t.flops = 2 * b * m * n * k;
  return t;
}

const OperationKind::Registered registered({.name = "product",
                                            .summary = "a product of matrices",
                                            .extents = "rows x inner by inner x columns, batch times",
                                            .work = product});

}  // namespace
}  // namespace trellis::sim
