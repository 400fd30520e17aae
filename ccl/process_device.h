// The device of this process, and the number of devices that the CUDA functions report.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/device.h"

namespace trellis::ccl {

// TRELLIS_DEVICES; 0: not set. Throws invalid_argument that names its value and the accepted values.
int devices_from_environment();

// The number of devices that the CUDA functions report: `told`, which is TRELLIS_DEVICES; if that is 0, the number of
// CPUs that this process may keep busy, or of ranks on this host if that is more; at least 2.
int devices_for(int told, int cpus, int local_ranks);
int device_count();

std::string device_from_environment();  // TRELLIS_DEVICE, "host" when it is not set

// Opens a rank's device: the host, or a core of the rank's own. On a simulated machine, the core has the rank's number
// in the job; among NeuronCores, the rank's number on the host. A process that sees only one core gets that one. Throws
// Unsupported, or invalid_argument that names the value and the known devices.
std::shared_ptr<device::Device> device_of_rank(std::string_view name, int rank, int local_rank);
// The device for TRELLIS_DEVICE and the launcher's rank: opened once, and kept until the process ends.
const std::shared_ptr<device::Device>& device_of_process();

}  // namespace trellis::ccl
