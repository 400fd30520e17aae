#include "tests/faults/injected_faults.h"

#include "ccl/transports/libfabric/wire/wire_wrapper.h"
#include "tests/faults/hostile_wire.h"

namespace trellis::ccl::libfabric {

InjectedFaults::InjectedFaults(const std::string& faults) {
  if (faults.empty()) return;
  wrap_wires([all = fault_injection_in(faults)](std::unique_ptr<Wire> wire, const WireRole& role) {
    if (all.only >= 0 && (all.only != role.rail || (role.control && all.control == 0))) return wire;
    if (all.control == (role.control ? 3 : 2)) return wire;
    FaultInjection own = all;  // with a seed of its own
    own.seed = all.seed * (role.control ? 1 : 1'000'003) * 1'009 + role.number;
    return hostile(std::move(wire), own);
  });
}

InjectedFaults::~InjectedFaults() { wrap_wires({}); }

}  // namespace trellis::ccl::libfabric
