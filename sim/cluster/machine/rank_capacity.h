// How much memory a rank of a machine has, and how fast it computes at most.
#pragma once

#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

double rank_memory(const Machine&);  // bytes of HBM; throws invalid_argument if the machine has none
double rank_flops(const Machine&,
                  bool wide16 = true);  // FLOP/s of its Tensor engines, in products of 16 bits or of f32

}  // namespace trellis::sim
