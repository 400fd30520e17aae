// Waiting for work that was queued on a NeuronCore.
#pragma once

#include <chrono>

#include "device/neuron/runtime.h"

namespace trellis::device {

void wait_for(const NeuronRuntime&, nrt::Sequence, std::chrono::milliseconds most);  // throws system_error

}  // namespace trellis::device
