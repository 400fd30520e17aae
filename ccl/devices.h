// The device of this process, and the number of devices that the CUDA functions report.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/device.h"

namespace trellis::ccl {

// TRELLIS_DEVICES; 0: not set. Throws invalid_argument that names its value and the accepted values.
int devices_from_environment();

std::string device_from_environment();  // TRELLIS_DEVICE, "host" when it is not set

// The device of that name; of several cores, the one of this process's rank. Throws invalid_argument that names the
// value and the known devices, Unsupported.
std::shared_ptr<device::Device> device_of_process();

// The core that a rank has: of a simulated machine the one of its rank in the job, of NeuronCores the one of its rank
// on the host. A process that sees one core alone has that one.
int core_of(std::string_view device, int rank, int local_rank);

}  // namespace trellis::ccl
