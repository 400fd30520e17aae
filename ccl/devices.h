// The device of this process, and the number of devices that the CUDA functions report.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/device.h"

namespace trellis::ccl {

// TRELLIS_DEVICES; 0: not set. Throws invalid_argument that names its value and the accepted values.
int devices_from_environment();

// The number of devices that the CUDA functions report. Where TRELLIS_DEVICES does not tell it: as many as CPUs that
// this process may keep busy, or as ranks on this host, and at least two.
int devices_for(int told, int cpus, int local_ranks);
int device_count();

std::string device_from_environment();  // TRELLIS_DEVICE, "host" when it is not set

// The device of a rank: a core of its own, which on a simulated machine is that of its rank in the job, of NeuronCores
// that of its rank on the host. A process that sees one core alone has that one; the host has none. Throws
// invalid_argument that names the value and the known devices, Unsupported.
std::shared_ptr<device::Device> device_of_rank(std::string_view name, int rank, int local_rank);
// That of TRELLIS_DEVICE and the launcher's rank: made once, and kept until the process ends.
const std::shared_ptr<device::Device>& device_of_process();

}  // namespace trellis::ccl
