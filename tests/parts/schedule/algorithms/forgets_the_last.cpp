// A wrong algorithm: everybody's data are summed at rank 0 and sent back, but not to the last rank.
#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

void forget_the_last(const Request& request, Builder& b) {
  for (std::int64_t s = 0; s < request.shares(); ++s) {
    for (Rank r = 1; r < b.ranks(); ++r) b.reduce(data(r, s), data(0, s));
    for (Rank r = 1; r + 1 < b.ranks(); ++r) b.copy(data(0, s), data(r, s));
  }
}

const RegisteredAlgorithm registered{{
    .name = "forgets_the_last",
    .summary = "sums at rank 0",
    .constraint = "any rank count",
    .serves = {Collective::all_reduce},
    .pieces = [](const Request& r) { return r.shares(); },
    .build = forget_the_last,
}};

}  // namespace
}  // namespace trellis::schedule
