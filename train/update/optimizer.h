// The end of a step: the norm of all gradients, clipping, AdamW, and with ZeRO-1 the gathering of parameters.
#pragma once

#include <vector>

#include "train/config/config.h"
#include "train/update/state.h"

namespace trellis::train {

// norm: one f64, the norm before clipping; no_tensor if clipping is off.
void write_update(Writer&, const Config&, const std::vector<ParameterState>&, TensorId norm);

}  // namespace trellis::train
