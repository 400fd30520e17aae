#include "ccl/transports/who.h"

#include <fmt/format.h>

namespace trellis::ccl {

std::string who(Rank r, const std::string& host) {
  return fmt::format("rank {}{}{}", r, host.empty() ? "" : " on host ", host);
}

std::string who(const Liveness& t, Rank r) { return who(r, t.host(r)); }

}  // namespace trellis::ccl
