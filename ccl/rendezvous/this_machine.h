// Identity of this machine, and of the namespaces on it that do not see each other; "" where the kernel has none.
// Throws system_error when it cannot be read: "" would then make a process seem to be on another machine than its
// neighbours.
#pragma once

#include <string>

namespace trellis::ccl {

std::string boot_id();                            // random, new at every boot
std::string namespace_of(const std::string& of);  // of this process: "net", "pid"

}  // namespace trellis::ccl
