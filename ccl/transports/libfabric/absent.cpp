// Registers the transports over libfabric as absent, in a build without libfabric's headers.
#include <stdexcept>

#include "ccl/transports/registry.h"

namespace trellis::ccl {
namespace {

std::string absence() { return "this build was made without libfabric's headers (Debian: libfabric-dev)"; }

std::unique_ptr<Transport> refuse(std::shared_ptr<Store>, const JoinOptions&) {
  throw std::invalid_argument(absence());
}

TransportFactory kind(const char* name) {
  return {.name = name,
          .summary = "processes of any hosts, through libfabric",
          .reach = TransportFactory::Reach::hosts,
          .open = refuse,
          .absent = absence};
}

const RegisteredTransport plain(kind("libfabric")), hybrid(kind("hybrid"));

}  // namespace
}  // namespace trellis::ccl
