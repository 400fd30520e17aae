// Collectives that the Neuron runtime does by itself, driven from the host.
#pragma once

#include "device/neuron/memory.h"

namespace trellis::device {

std::string why_not_native(const NeuronRuntime&, const TensorsByAddress&, const NativeCollective&);  // empty: it can
std::unique_ptr<NativeRun> start_native(const std::shared_ptr<NeuronRuntime>&, const TensorsByAddress&, int core,
                                        const NativeCollective&, NativeTurn);

}  // namespace trellis::device
