// Finds rails that have stopped: nothing arrives over them although the receiver answers otherwise. Receivers count
// arrivals at all times, also while they compute, and report them at least as often as they answer.
#pragma once

#include <vector>

#include "ccl/transports/libfabric/presence/presence.h"
#include "ccl/transports/libfabric/rails/delivery_counters.h"
#include "ccl/transports/libfabric/rails/rail_load_balancer.h"
#include "ccl/transports/libfabric/rails/stall_detector.h"

namespace trellis::ccl::libfabric {

class ControlLink;

class RailMonitor {
 public:
  RailMonitor(Presence&, ControlLink&, const RailLoadBalancer&, const DeliveryCounters&);
  // Returns a rail that has stopped; -1: none has. Asks ranks whose reports are old for new ones. To be called often.
  int stopped(Deadline now);
  void begin(int rail);  // forgets the closed rail whose slot this new one has
  void end();            // call it when nothing is sent any more

 private:
  // What one rank has reported of the arrival of what was sent to it.
  struct Arriving {
    std::array<StallDetector, most_rails> rails;  // by slot
    std::uint64_t arrived = 0;                    // over all of them
    Deadline stuck_since = {};                    // since when nothing more has arrived; none: all has
  };
  void see_whether_stuck(const Presence::Locked&, Rank, Deadline now, bool we_paused);

  Presence& presence_;
  ControlLink& control_;
  const RailLoadBalancer& rails_;
  const DeliveryCounters& traffic_;
  std::vector<Arriving> arriving_;  // by rank
  Deadline looked_ = {};
};

}  // namespace trellis::ccl::libfabric
