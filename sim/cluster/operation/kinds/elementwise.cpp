// Elementwise work that has no kind of its own, with as many arrays and passes as its shape says; and sums, copies,
// casts and fills.
#include <algorithm>

#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

EngineTimes elementwise(const OperationShape& s, const EngineRates& e) {
  ElementPasses p;
  p.reads = s.inputs >= 0 ? s.inputs : 1;
  p.writes = s.outputs >= 0 ? s.outputs : 1;
  p.scalar = s.scalar >= 0 ? s.scalar : 0;
  p.vector = s.vector >= 0 ? s.vector : p.scalar > 0 ? 0 : std::max(1.0, p.reads - 1);
  p.flops = p.vector + p.scalar;
  return passes_over(s, e, p);
}

// MX has an instruction of its own, which reads 16-bit elements: wider ones are cast to these before.
EngineTimes casting(const OperationShape& s, const EngineRates& e) {
  EngineTimes t = passes_over(s, e, {.vector = 1});
  if (is_mx(s.result_type())) t.vector = (bytes_of(s.type) > 2 ? t.vector : 0) + e.quantize_mx(s.elements());
  return t;
}

using Registered = OperationModel::Registered;
const Registered any({.name = "elementwise",
                      .summary = "any elementwise work: inputs, outputs, and passes of vector and scalar",
                      .extents = "rows x columns, batch times",
                      .work = elementwise});
const Registered added(kind_of_passes("add", "the sum of two arrays", {.vector = 1, .reads = 2, .flops = 1}));
const Registered dropout(kind_of_passes("dropout", "drops elements at random", {.vector = 2, .flops = 1}));
const Registered dropout_gradient(kind_of_passes("dropout_gradient", "of dropout", {.vector = 1, .flops = 1}));
const Registered rotary(kind_of_passes("rotary", "turns pairs of a head's elements by their position",
                                       {.vector = 3, .flops = 3}));
const Registered copy(kind_of_passes("copy", "moves an array through SBUF", {}));
const Registered cast({.name = "cast",
                       .summary = "another type of each element",
                       .extents = "rows x columns, batch times",
                       .work = casting});
const Registered fill(kind_of_passes("fill", "one value everywhere", {.reads = 0}));
// A bias is added where a product leaves PSUM.
const Registered bias(kind_of_passes("bias", "adds a row to all rows, as a product's results leave PSUM",
                                     {.reads = 0, .writes = 0, .flops = 1}));
const Registered sum(kind_of_passes("reduce", "sums of rows or columns", {.vector = 1, .writes = 0, .flops = 1}));

}  // namespace
}  // namespace trellis::sim
