// Dissemination barrier: in round k, every rank tells the rank 2^k ahead (1, 2, 4, ...) what it has heard so far.
#include <fmt/format.h>

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

std::string refuses(const Request& r) {
  if (r.channels > 1) return fmt::format("{} channels: expected 1, as a barrier carries no data", r.channels);
  if (r.segments > 1) return fmt::format("{} segments: expected 1, as a barrier carries no data", r.segments);
  return "";
}

Symmetry symmetry(const Request& r) { return {{{SymmetryAxis::Kind::rotate, r.ranks()}}}; }

const RegisteredAlgorithm registered{{
    .name = "dissemination",
    .summary = "a barrier in as many steps as the rank count has bits",
    .constraint = "any rank count",
    .serves = {Collective::barrier},
    .refuses = refuses,
    .build = build,
    .dims = UseOfDims::none,
    .symmetry = symmetry,
}};

}  // namespace
}  // namespace trellis::schedule
