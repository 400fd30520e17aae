#include "sim/cluster/operation/passes.h"

namespace trellis::sim {

EngineTimes passes_over(const OperationShape& s, const EngineRates& e, const Passes& p) {
  const double n = s.elements(), in = bytes_of(s.type), out = bytes_of(s.result_type());
  const auto columns = static_cast<double>(s.columns);
  EngineTimes t;
  t.vector = e.vector(p.vector * n, s.type);
  t.scalar = e.scalar(p.scalar * n);
  const double through = s.fused ? e.spill() : 1;
  t.memory = through * (e.memory(p.reads * n * in, columns * in) + e.memory(p.writes * n * out, columns * out));
  t.bytes = through * n * (p.reads * in + p.writes * out);
  t.flops = p.flops * n;
  return t;
}

OperationKind kind_of_passes(std::string name, std::string summary, const Passes& p) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .extents = "rows x columns, batch times",
          .work = [p](const OperationShape& s, const EngineRates& e) { return passes_over(s, e, p); }};
}

}  // namespace trellis::sim
