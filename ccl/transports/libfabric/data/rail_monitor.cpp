#include "ccl/transports/libfabric/data/rail_monitor.h"

#include <algorithm>

#include "ccl/transports/libfabric/control/control_link.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 20ms;
constexpr std::chrono::milliseconds rail_patience = 1000ms;  // a piece takes half of it at 10 Mb/s
constexpr std::chrono::milliseconds longest_patience = 5000ms;
constexpr int patiences = 2;         // the patience with the last rail is the timeout divided by this
constexpr int answers_of_last = 20;  // of the peer, before the last rail counts as stopped: a full link loses some

}  // namespace

RailMonitor::RailMonitor(Presence& presence, ControlLink& control, const RailLoadBalancer& rails,
                         const DeliveryCounters& traffic)
    : presence_(presence),
      control_(control),
      rails_(rails),
      traffic_(traffic),
      arriving_(static_cast<std::size_t>(presence.roster().ranks())) {}

void RailMonitor::begin(int rail) {
  for (Arriving& one : arriving_) one.rails[slot_of(rail)] = {};
}

// Called when the wires are closed. From then on no rank counts as stuck: data that were under way will never arrive,
// which says nothing about their receivers.
void RailMonitor::end() {
  const auto p = presence_.lock();
  for (Rank r = 0; r < presence_.roster().ranks(); ++r) p.detector().set_stuck(r, {});
}

int RailMonitor::stopped(Deadline now) {
  if (now - looked_ < between_looks) return -1;
  const bool we_paused = now - looked_ > rail_patience / 2;
  looked_ = now;
  // Replacing the last rail makes all ranks connect anew, so it is worth a longer wait.
  const auto p = presence_.lock();
  const auto patience = rails_.only_one()
                            ? std::clamp(p.detector().timeout() / patiences, rail_patience, longest_patience)
                            : rail_patience;
  bool asks = false;
  for (Rank r = 0; r < presence_.roster().ranks(); ++r) {
    const RailCounts& sent = traffic_.sent_to(r);
    if (sent == RailCounts{} || p.states().left(r)) continue;
    see_whether_stuck(p, r, now, we_paused);
    const RailCounts& arrived = p.states().of(r).head.arrived;
    const RailSet left = rails_.left() | p.states().rails_left_by(r);
    for (int rail = rails_.first(); rail < rails_.all(); ++rail) {
      const std::size_t at = slot_of(rail);
      if (left.has(rail)) continue;
      StallDetector& one = arriving_[static_cast<std::size_t>(r)].rails[at];
      const auto is = one.look(sent[at], arrived[at], p.detector().last_heard(r), now, patience,
                               rails_.only_one() ? answers_of_last : 1);
      if (is == StallDetector::Is::stopped) return rail;
      if (is == StallDetector::Is::unsure) p.heartbeats().ask(r, now, between_looks), asks = true;
    }
  }
  if (asks) control_.wake();
  return -1;
}

// Tells the failure detector since when no data have arrived at the rank. That counts like silence, even if the rank
// answers on the control path. Pieces on a closed rail are not counted: they were retransmitted.
void RailMonitor::see_whether_stuck(const Presence::Locked& p, Rank r, Deadline now, bool we_paused) {
  const RailSet left = rails_.left() | p.states().rails_left_by(r);
  const RailCounts& sent = traffic_.sent_to(r);
  const RailCounts& arrived = p.states().of(r).head.arrived;
  std::uint64_t all_sent = 0, all_arrived = 0;
  for (int rail = rails_.first(); rail < rails_.all(); ++rail)
    if (const std::size_t at = slot_of(rail); !left.has(rail))
      all_sent += sent[at], all_arrived += std::min(arrived[at], sent[at]);
  Arriving& a = arriving_[static_cast<std::size_t>(r)];
  if (all_arrived >= all_sent)
    a.stuck_since = {};
  else if (a.stuck_since == Deadline() || a.arrived != all_arrived || we_paused)
    a.stuck_since = now;
  a.arrived = all_arrived;
  p.detector().set_stuck(r, a.stuck_since);
}

}  // namespace trellis::ccl::libfabric
