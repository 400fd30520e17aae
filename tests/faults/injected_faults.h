// A fabric with faults, for the ranks of a test.
#pragma once

#include <string>

namespace trellis::ccl::libfabric {

// While it lives, wires that this process and its forked children open have the faults of the text: see
// fault_injection.h. Empty: no faults.
class InjectedFaults {
 public:
  explicit InjectedFaults(const std::string& faults);
  ~InjectedFaults();
  InjectedFaults(const InjectedFaults&) = delete;
  InjectedFaults& operator=(const InjectedFaults&) = delete;
};

}  // namespace trellis::ccl::libfabric
