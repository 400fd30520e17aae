// Down a line: the root sends to its neighbour, who sends to the next, round all ranks.
#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

void build(const Request& request, Builder& b) {
  const Rank n = request.ranks(), root = request.operation.root;
  for (std::int32_t i = 0; i < request.shares(); ++i) {
    Builder on = b.on_channel(i / request.segments);
    for (Rank hop = 0; hop + 1 < n; ++hop) on.copy(data((root + hop) % n, i), data((root + hop + 1) % n, i));
  }
}

const RegisteredAlgorithm registered{{
    .name = "line",
    .summary = "from neighbour to neighbour, one after the other",
    .constraint = "any rank count",
    .serves = {Collective::broadcast},
    .pieces = [](const Request& r) { return r.shares(); },
    .build = build,
}};

}  // namespace
}  // namespace trellis::schedule
