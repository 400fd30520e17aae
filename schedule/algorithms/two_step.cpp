// Direct exchange in two steps: each rank first receives and sums one block, then that block goes where it is needed.
// Each block is summed by one rank, so all ranks end with the same bits.
#include "schedule/algorithms/patterns/direct.h"

namespace trellis::schedule {
namespace {

using enum Collective;

TorusDistances row(const Builder& b) { return TorusDistances({b.ranks()}); }

void first_step(const Request& request, Builder& b, const BlockShare& share) {
  const Rank root = request.operation.root;
  if (request.operation.collective != broadcast) return sum_at_owners(b, row(b), share);
  from_root(b, root, [&](Rank r) { b.copy(share.at(root, r), share.at(r, r)); });
}

void second_step(const Request& request, Builder& b, const BlockShare& share) {
  const Rank root = request.operation.root;
  if (request.operation.collective == all_reduce) return send_to_all(b, row(b), share);
  if (request.operation.collective == reduce)
    return to_root(b, root, [&](Rank r, Rank) { b.copy(share.at(r, r), share.at(root, r)); });
  each_to_each(b, row(b), [&](Rank r, Rank peer, Rank) {
    if (peer != root) b.copy(share.at(r, r), share.at(peer, r));
  });
}

void build(const Request& request, Builder& b) {
  for (const auto step : {first_step, second_step})
    each_share(request, b, [&](Builder& on, const BlockShare& share) { step(request, on, share); });
}

const RegisteredAlgorithm registered{{
    .name = "two_step",
    .summary = "one block a rank by direct exchange, then to all or to the root: least traffic in two steps",
    .constraint = "any rank count",
    .serves = {all_reduce, broadcast, reduce},
    .pieces = [](const Request& r) { return r.shares() * r.ranks(); },
    .build = build,
    .dims = UseOfDims::none,
    .symmetry = rotated,
}};

}  // namespace
}  // namespace trellis::schedule
