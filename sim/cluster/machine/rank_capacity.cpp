#include "sim/cluster/machine/rank_capacity.h"

#include "text/refuse.h"

namespace trellis::sim {
namespace {

const Figures& figures_of(const Machine& machine) {
  if (machine.spec().chip.empty())
    text::refuse("machine {} has no chip: expected one whose tensor engine is known", machine.name());
  return machine.spec().figures;
}

}  // namespace

double rank_memory(const Machine& machine) { return figures_of(machine).bytes("hbm.bytes") / machine.cores(); }

double rank_flops(const Machine& machine, bool wide16) {
  const Figures& f = figures_of(machine);
  const double row = f.cycles(wide16 ? "tensor.row.16bit" : "tensor.row.f32");
  if (!(row > 0) || !(f.number("tensor.rows") > 0))
    text::refuse("machine {}: its chip does not say how quick its products are", machine.name());
  return 2 * f.number("tensor.rows") * f.number("tensor.columns") * f.frequency("tensor.clock") / row *
         f.number("cores") / machine.cores();
}

}  // namespace trellis::sim
