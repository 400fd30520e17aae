// Liveness probes: fresh connections to the addresses of processes that may have ended. If one is refused, nobody
// listens there any more; the kernel accepts connections for a process that lives, even one that is stopped.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "ccl/errors.h"
#include "net/address.h"
#include "net/descriptor.h"

namespace trellis::ccl::libfabric {

class LivenessProbes {
 public:
  void begin(std::size_t place, const net::Address&);  // starts a probe, unless one is under way there
  std::vector<std::size_t> refused();                  // members that have refused a probe since the last call

 private:
  struct Knock {
    net::Descriptor socket;
    int error = 0;  // why a connection failed at once; 0: it did not
    Deadline begun = {};
  };
  std::map<std::size_t, Knock> all_;  // by place
};

}  // namespace trellis::ccl::libfabric
