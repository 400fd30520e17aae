// Collectives that the Neuron runtime does by itself, driven from the host.
#pragma once

#include "device/neuron/memory.h"

namespace trellis::device {

std::string why_not_native(const NeuronRuntime&, const TensorsByAddress&, const NativeCollective&);  // empty: it can
void run_native(const NeuronRuntime&, const TensorsByAddress&, int core, const NativeCollective&);

}  // namespace trellis::device
