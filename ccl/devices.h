// The number of devices that the CUDA functions report.
#pragma once

namespace trellis::ccl {

// TRELLIS_DEVICES; 0: not set. Throws invalid_argument that names its value and the accepted values.
int devices_from_environment();

}  // namespace trellis::ccl
