#include "ccl/transports/describe_rank.h"

#include <fmt/format.h>

namespace trellis::ccl {

std::string who(Rank r, const std::string& host) {
  return fmt::format("rank {}{}{}", r, host.empty() ? "" : " on host ", host);
}

std::string who(const Liveness& t, Rank r) { return who(r, t.host(r)); }

std::string unanswered_for(std::chrono::milliseconds time) {
  return fmt::format("has not answered for {:.1f} s", std::chrono::duration<double>(time).count());
}

std::string how_it_went(Liveness& t, Rank r) {
  if (t.left(r)) return "has closed the communicator";
  if (const auto silence = t.silence(r); silence.count() > 0) return unanswered_for(silence);
  return t.activity(r).running ? "died" : "is gone: its process has ended";
}

}  // namespace trellis::ccl
