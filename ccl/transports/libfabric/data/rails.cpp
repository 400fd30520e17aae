#include "ccl/transports/libfabric/data/rails.h"

#include <algorithm>
#include <tuple>

namespace trellis::ccl::libfabric {
namespace {

constexpr int most_failures = 3;
constexpr double newest_counts = 0.125;  // of a rail's speed
constexpr double slowest = 8;  // times slower than the fastest: such a rail still gets a piece, and is measured

bool has(RailSet set, int rail) { return (set >> rail & 1) != 0; }

}  // namespace

int Rails::choose(std::size_t bytes) const {
  // What a rail without a speed of its own is taken to have: that of the fastest.
  double usual = 0;
  for (const Rail& r : rails_)
    if (r.seconds_a_byte != 0) usual = usual == 0 ? r.seconds_a_byte : std::min(usual, r.seconds_a_byte);
  int best = -1;
  std::tuple<bool, double> least;
  for (int i = 0; i < static_cast<int>(rails_.size()); ++i) {
    if (has(left_, i)) continue;
    const Rail& r = at(i);
    const double each = r.seconds_a_byte == 0 ? (usual == 0 ? 1 : usual) : std::min(r.seconds_a_byte, slowest * usual);
    const std::tuple cost(r.failures >= most_failures, static_cast<double>(r.bytes + bytes) * each);
    if (best >= 0 && least <= cost) continue;
    best = i;
    least = cost;
  }
  return best;
}

void Rails::posted(int rail, std::size_t bytes, Deadline now) {
  Rail& r = rails_[static_cast<std::size_t>(rail)];
  if (r.pieces++ == 0) r.since = now;
  r.bytes += bytes;
}

void Rails::done(int rail, std::size_t bytes, Deadline posted, bool well, Deadline now) {
  Rail& r = rails_[static_cast<std::size_t>(rail)];
  const Deadline began = std::max(posted, r.since);  // before, it sent others
  r.bytes -= std::min(r.bytes, bytes);
  r.pieces -= r.pieces == 0 ? 0 : 1;
  r.since = now;
  r.failures = well ? 0 : r.failures + 1;
  if (!well) return;
  const double each =
      std::chrono::duration<double>(now - began).count() / static_cast<double>(std::max<std::size_t>(bytes, 1));
  r.seconds_a_byte = r.seconds_a_byte == 0 ? each : r.seconds_a_byte + newest_counts * (each - r.seconds_a_byte);
}

void Rails::leave(int rail) {
  left_ |= static_cast<RailSet>(1U << rail);
  rails_[static_cast<std::size_t>(rail)] = {};
}

}  // namespace trellis::ccl::libfabric
