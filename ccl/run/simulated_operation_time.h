// Simulated time of a communicator's operations. A collective takes its whole time when it begins; its copies and sums
// then take none. A send is preceded by a message that carries the sender's clock. On a device without simulated time,
// nothing happens here.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "ccl/plan/planner.h"
#include "ccl/plan/point_to_point.h"
#include "ccl/run/device_agreement.h"
#include "device/simulated_time.h"

namespace trellis::ccl {

class SimulatedOperationTime {
 public:
  SimulatedOperationTime(device::Device&, const DeviceAgreement&, Rank rank, Rank ranks);

  // Takes the time of the whole operation and calls hold(). Throws Unsupported if that time is not known.
  void begin(const Call&, const CallPlan&, bool in_place);
  // Returns the messages of a group, and those that carry their senders' clocks.
  std::span<const SendRecv> with_clocks(std::span<const SendRecv>);
  // Copies and sums take no time from here until end(), which is called even if the operation fails or does not begin.
  void hold() {
    if (time_ != nullptr && !std::exchange(holding_, true)) time_->hold();
  }
  void end() {
    if (time_ != nullptr && std::exchange(holding_, false)) time_->release();
  }
  void end_messages();  // ends a group's messages and takes their time

 private:
  const device::Device& device_;
  device::SimulatedTime* const time_;  // null: time is real, or this rank is alone
  const DeviceAgreement& agreement_;
  const Rank rank_;
  bool holding_ = false;
  device::RankClock own_;
  std::vector<device::RankClock> senders_;  // by message
  std::vector<SendRecv> messages_;
  SendRecv largest_;  // from == to: none
};

}  // namespace trellis::ccl
