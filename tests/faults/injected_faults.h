// A fabric with faults, for the ranks of a test.
#pragma once

#include <string>

namespace trellis::ccl::libfabric {

// While it lives, the wires that this process opens, and those that it forks, do what the text says: see
// fault_injection.h. Empty: nothing is done to them.
class InjectedFaults {
 public:
  explicit InjectedFaults(const std::string& faults);
  ~InjectedFaults();
  InjectedFaults(const InjectedFaults&) = delete;
  InjectedFaults& operator=(const InjectedFaults&) = delete;
};

}  // namespace trellis::ccl::libfabric
