// Which build of the library this is.
#pragma once

#include <string>

namespace trellis::kernels {

std::string build_id();  // changes with every build of the library; "unnamed" where the linker gave it none

}  // namespace trellis::kernels
