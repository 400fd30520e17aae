#include "ccl/transports/libfabric/rails/rail_load_balancer.h"

#include <algorithm>
#include <tuple>

namespace trellis::ccl::libfabric {
namespace {

constexpr int most_failures = 3;
constexpr double newest_counts = 0.125;  // weight of the newest piece in a rail's speed
constexpr double believed = 4;    // limits how much slower or faster one piece may seem: a process may lose its core
constexpr double slowest = 8;     // a rail counts as this many times slower at most, so that it still gets pieces
constexpr double alike = 4;       // times slower: up to this, a rail counts as equally fast, as chance may explain it
constexpr double remembered = 2;  // pieces: a rail that had less than its share makes up for no more than these

}  // namespace

// The fastest rail's seconds per byte; 0: none is known.
double RailLoadBalancer::best_speed() const {
  double best = 0;
  for (const Rail& r : rails_)
    if (r.seconds_a_byte != 0) best = best == 0 ? r.seconds_a_byte : std::min(best, r.seconds_a_byte);
  return best;
}

// Relative to the fastest rail. One without a speed of its own is taken to be as fast.
double RailLoadBalancer::slowness(const Rail& r) const {
  const double times = r.seconds_a_byte == 0 ? 1 : r.seconds_a_byte / best_speed();
  return times < alike ? 1 : std::min(times, slowest);
}

// What was given to a rail counts as well as what is under way on it: some providers report a piece as complete at
// once, so that nothing ever seems to be under way.
int RailLoadBalancer::choose(std::size_t bytes) const {
  int best = -1;
  std::tuple<bool, bool, double> least;
  for (int i = first(); i < static_cast<int>(rails_.size()); ++i) {
    if (left_.has(i)) continue;
    const Rail& r = at(i);
    const std::tuple cost(r.failures >= most_failures, full(i),
                          r.given + static_cast<double>(r.bytes + bytes) * slowness(r));
    if (best >= 0 && least <= cost) continue;
    best = i;
    least = cost;
  }
  return best;
}

void RailLoadBalancer::posted(int rail, std::size_t bytes, Deadline now) {
  Rail& r = rails_[static_cast<std::size_t>(rail)];
  if (r.pieces++ == 0) r.since = now;
  r.bytes += bytes;
  r.given += static_cast<double>(bytes) * slowness(r);
  for (Rail& one : rails_)
    one.given = std::max(one.given, r.given - (remembered + slowness(one)) * static_cast<double>(bytes));
}

void RailLoadBalancer::done(int rail, std::size_t bytes, Deadline posted, bool well, Deadline now) {
  Rail& r = rails_[static_cast<std::size_t>(rail)];
  const Deadline began = std::max(posted, r.since);  // before r.since, the rail sent other pieces
  r.bytes -= std::min(r.bytes, bytes);
  r.pieces -= r.pieces == 0 ? 0 : 1;
  r.since = now;
  r.failures = well ? 0 : r.failures + 1;
  if (!well) return;
  double each =
      std::chrono::duration<double>(now - began).count() / static_cast<double>(std::max<std::size_t>(bytes, 1));
  const double before = r.seconds_a_byte == 0 ? best_speed() : r.seconds_a_byte;
  if (before != 0) each = std::clamp(each, before / believed, before * believed);
  r.seconds_a_byte = r.seconds_a_byte == 0 ? each : r.seconds_a_byte + newest_counts * (each - r.seconds_a_byte);
}

void RailLoadBalancer::leave(int rail) {
  left_.add(rail);
  rails_[static_cast<std::size_t>(rail)] = {};
}

}  // namespace trellis::ccl::libfabric
