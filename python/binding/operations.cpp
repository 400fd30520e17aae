// Times of single computations, by the formulas of the simulator.
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "python/binding/module_parts.h"
#include "sim/cluster/operation/operation_model.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;
using namespace sim;

nb::dict as_dict(const OperationTime& t) {
  nb::dict d;
  d["total"] = t.total, d["overlap"] = t.overlap, d["longest"] = std::string(t.longest());
  d["tensor"] = t.engines.tensor, d["vector"] = t.engines.vector;
  d["scalar"] = t.engines.scalar, d["memory"] = t.engines.memory;
  d["bytes"] = t.engines.bytes, d["flops"] = t.engines.flops;
  return d;
}

EngineRates read_rates(const std::string& chip, const std::vector<std::string>& changes, double cores) {
  Figures figures = chip_named(chip).figures();
  for (const std::string& change : changes) {
    const std::size_t equals = change.find('=');
    if (equals == std::string::npos)
      throw std::invalid_argument("what_if '" + change + "': expected FIGURE=VALUE, as in dma.engine.rate=34GB/s");
    figures.set(change.substr(0, equals), std::string_view(change).substr(equals + 1));
  }
  return EngineRates(figures, cores, chip);
}

// The rates of the last call are kept: a step's operations are asked for one after the other, all of one chip. The GIL
// guards them.
const EngineRates& rates_of(const std::string& chip, const std::vector<std::string>& changes, double cores) {
  using Asked = std::tuple<std::string, std::vector<std::string>, double>;
  static std::optional<std::pair<Asked, EngineRates>> kept;
  if (Asked asked{chip, changes, cores}; !kept || kept->first != asked)
    kept.emplace(std::move(asked), read_rates(chip, changes, cores));
  return kept->second;
}

}  // namespace

void add_operations(nb::module_& m) {
  m.def(
      "operation_time",
      [](const std::string& chip, const std::vector<std::string>& what_if, double cores, const std::string& kind,
         std::uint64_t rows, std::uint64_t columns, std::uint64_t inner, std::uint64_t batch, std::uint64_t shared,
         const std::string& type, const std::string& result, bool fused, bool accumulate, bool causal, bool flash,
         bool dropout, double inputs, double outputs, double vector, double scalar) {
        const OperationShape shape{.kind = kind,
                                   .rows = rows,
                                   .columns = columns,
                                   .inner = inner,
                                   .batch = batch,
                                   .shared = shared,
                                   .type = type,
                                   .result = result,
                                   .fused = fused,
                                   .accumulate = accumulate,
                                   .causal = causal,
                                   .flash = flash,
                                   .dropout = dropout,
                                   .inputs = inputs,
                                   .outputs = outputs,
                                   .vector = vector,
                                   .scalar = scalar};
        return as_dict(operation_time(shape, rates_of(chip, what_if, cores)));
      },
      "chip"_a, "what_if"_a, "cores"_a, "kind"_a, "rows"_a, "columns"_a, "inner"_a, "batch"_a, "shared"_a, "type"_a,
      "result"_a, "fused"_a, "accumulate"_a, "causal"_a, "flash"_a, "dropout"_a, "inputs"_a, "outputs"_a, "vector"_a,
      "scalar"_a);
  m.def("operation_kinds", [] {
    nb::dict kinds;
    for (const auto& [name, kind] : operation_kinds().entries())
      kinds[name.c_str()] = kind.summary + "; " + kind.extents;
    return kinds;
  });
}

}  // namespace trellis::binding
