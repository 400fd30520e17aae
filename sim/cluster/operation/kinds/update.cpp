// What an optimizer does to its parameters. A compiler that does not fuse it makes each of its operations a pass of its
// own over memory, which reads two arrays and writes one; how many there are is a figure.
#include <fmt/format.h>

#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

OperationModel update(std::string rule, ProgramOf program = {}) {
  return {.name = rule,
          .summary = fmt::format("an {} update of so many parameters", rule),
          .extents = "rows x columns parameters, of the states' type",
          .work =
              [key = "operation.update." + rule](const OperationShape& s, const EngineRates& e) {
                const double operations = e.figures().number(key);
                return passes_over(
                    s, e, {.vector = operations, .reads = 2 * operations, .writes = operations, .flops = operations});
              },
          .program = std::move(program)};
}

using Registered = OperationModel::Registered;
const Registered adamw(update("adamw", program_of_elements("adamw", std::uint64_t{128} * 1024, "parameters")));
const Registered lamb(update("lamb")), lamb_apply(update("lamb_apply")), sgd(update("sgd"));
const Registered norm({.name = "gradient_norm",
                       .summary = "the sum of squares of gradients, and their scaling to clip it",
                       .extents = "rows x columns gradients",
                       .work = [](const OperationShape& s, const EngineRates& e) {
                         const double reads = e.figures().number("operation.clip.reads");
                         return passes_over(s, e, {.vector = reads, .reads = reads, .writes = 1, .flops = reads});
                       }});

}  // namespace
}  // namespace trellis::sim
