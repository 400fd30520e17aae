// Dissemination barrier: in round k, every rank tells the rank 2^k ahead (1, 2, 4, ...) what it has heard so far.
#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

void build(const Request&, Builder& b) {
  const Rank n = b.ranks();
  std::int64_t step = 0;
  for (Rank distance = 1; distance < n; distance *= 2, ++step) {
    for (Rank r : b.senders([&](Rank me) { return (me - distance + n) % n; }))
      b.copy(data(r, 0), tmp((r + distance) % n, step, 1, 0));
    for (Rank r : b.senders()) b.reduce(tmp(r, step, 1, 0), data(r, 0));
  }
}

const RegisteredAlgorithm registered{{
    .name = "dissemination",
    .summary = "a barrier in as many steps as the rank count has bits",
    .constraint = "any rank count",
    .serves = {Collective::barrier},
    .refuses = [](const Request& r) { return refuses_shares(r, "as a barrier carries no data"); },
    .build = build,
    .dims = UseOfDims::none,
    .symmetry = rotated,
}};

}  // namespace
}  // namespace trellis::schedule
