#include "tools/train/peak.h"

#include <fmt/format.h>

#include <stdexcept>

#include "sim/cluster/machine/machine.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::tools {

double peak_tflops(const std::string& machine, train::Precision precision) {
  const sim::Machine on = sim::machine_named(machine);
  if (on.spec().chip.empty())
    throw std::invalid_argument(
        fmt::format("machine {} has no chip: expected one whose tensor engine is known", machine));
  const sim::ChipSpec chip = sim::chip_named(on.spec().chip);
  const double cycles = precision == train::Precision::fp32 ? chip.tensor.row_cycles_f32 : chip.tensor.row_cycles_wide;
  if (!(cycles > 0) || chip.tensor.rows == 0)
    throw std::invalid_argument(fmt::format("chip {} does not say how quick its products are", chip.name));
  const double core = 2.0 * chip.tensor.rows * chip.tensor.columns * chip.engine[0].clock / cycles;
  return core * chip.cores / on.cores() / 1e12;
}

}  // namespace trellis::tools
