// The registry of devices by name, to which a RegisteredBackend at namespace scope adds one; and functions that devices
// share to check and run kernels and programs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/program.h"
#include "kernels/dispatch/registry.h"

namespace trellis::device {

struct Backend {
  std::string name;     // "host"; one that ends in ':' is the beginning of names: "sim:"
  std::string pattern;  // as users write it: "sim:MACHINE"
  std::string summary;
  std::shared_ptr<Device> (*open)(std::string_view name, const Opening&) = nullptr;
  std::vector<std::string> (*names)() = nullptr;  // all that can be opened
  std::string (*missing)() = nullptr;             // why it cannot be opened here, one sentence; empty: it can
};

struct RegisteredBackend {
  explicit RegisteredBackend(Backend);
};

const std::map<std::string, Backend, std::less<>>& backends();
const Backend& backend_named(std::string_view);  // throws invalid_argument and lists the known ones

// Throws invalid_argument, naming the program and the operand, unless each operand is bound to memory of its size, and
// nothing else is.
void check_bindings(const std::string& program, const std::vector<ProgramOperand>&, const std::vector<Binding>&);
// Returns the kernel that the launch names. Throws invalid_argument if it cannot run with the launch's operands.
const kernels::Kernel& check_launch(const KernelLaunch&);
void run_launch(const KernelLaunch&);
double bytes_touched(const kernels::Kernel&, const KernelLaunch&);

}  // namespace trellis::device
