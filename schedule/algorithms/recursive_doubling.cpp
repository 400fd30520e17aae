// All-reduce of the whole buffer between partners at doubling distances: the fewest steps. Partners add the same two
// sums, so all ranks end with the same bits. Ranks beyond a power of two give their data to a neighbour and get the
// result.
#include <bit>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

// The ranks that exchange, renumbered. The even ones among the first 2 x `folded` ranks are left out.
struct Core {
  Rank size = 1;    // a power of two
  Rank folded = 0;  // ranks beyond the power of two

  explicit Core(Rank ranks) : size(static_cast<Rank>(std::bit_floor(static_cast<std::uint32_t>(ranks)))) {
    folded = ranks - size;
  }
  bool left_out(Rank r) const { return r < 2 * folded && r % 2 == 0; }
  Rank partner(Rank r, Rank distance) const {
    if (left_out(r)) return -1;
    const Rank other = (r < 2 * folded ? r / 2 : r - folded) ^ distance;
    return other < folded ? 2 * other + 1 : other + folded;
  }
  Rank guest(Rank r) const { return r < 2 * folded && r % 2 == 1 ? r - 1 : -1; }
  Rank host(Rank r) const { return left_out(r) ? r + 1 : -1; }
};

// Both partners send before either adds. Received sums alternate between two scratch places, so that receiving and
// adding overlap.
void exchange(Builder& b, const Core& core, Rank distance, std::int64_t c, std::int64_t waits) {
  const auto partner = [&](Rank r) { return core.partner(r, distance); };
  for (Rank r : b.senders(partner))
    if (partner(r) > r) b.reduce_both(data(r, c), data(partner(r), c), waits);
}

void build_lane(const Request& request, Builder& b, std::int64_t first) {
  const Core core(b.ranks());
  const std::int64_t end = first + request.segments;
  for (std::int64_t c = first; c < end; ++c)
    for (Rank r : b.senders([&](Rank me) { return core.guest(me); }))
      if (core.left_out(r)) b.reduce(data(r, c), data(core.host(r), c));
  std::int64_t turn = 0;
  for (Rank distance = 1; distance < core.size; distance *= 2, turn = 1 - turn)
    for (std::int64_t c = first; c < end; ++c) exchange(b, core, distance, c, turn * request.shares() + c);
  for (std::int64_t c = first; c < end; ++c)
    for (Rank r : b.senders([&](Rank me) { return core.host(me); }))
      if (core.guest(r) >= 0) b.copy(data(r, c), data(core.guest(r), c));
}

void build(const Request& request, Builder& b) {
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    Builder on = b.on_channel(channel);
    build_lane(request, on, std::int64_t{channel} * request.segments);
  }
}

const RegisteredAlgorithm registered{{
    .name = "recursive_doubling",
    .summary = "whole buffers between partners at doubling distances; fewest steps, for small messages",
    .constraint = "any rank count; two steps more where it is no power of two",
    .serves = {Collective::all_reduce},
    .pieces = [](const Request& r) { return r.shares(); },
    .build = build,
    .lanes_are_runs = true,
    .dims = UseOfDims::none,
    .symmetry = flipped,
    .renown = 4,
}};

}  // namespace
}  // namespace trellis::schedule
