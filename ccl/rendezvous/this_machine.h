// Identity of this machine, and of the namespaces on it that do not see each other; "" where the kernel has none.
// Throws system_error when it cannot be read: "" would then make a process seem to be on another machine than its
// neighbours.
#pragma once

#include <string>

namespace trellis::ccl {

std::string boot_id();                            // random, new at every boot
std::string namespace_of(const std::string& of);  // of this process: "net", "pid"

// Equal for processes that see each other and can share memory: of one boot and one namespace of processes. `name`
// (TRELLIS_HOST) makes several hosts of one machine.
std::string this_host(const std::string& name);

}  // namespace trellis::ccl
