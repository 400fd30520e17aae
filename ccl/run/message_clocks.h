// Messages between ranks with simulated time: before each goes one with the clock of its sender.
#pragma once

#include <span>
#include <vector>

#include "ccl/plan/point_to_point.h"
#include "ccl/run/agreement.h"

namespace trellis::ccl {

class MessageClocks {
 public:
  MessageClocks(device::Device& device, Rank rank) : device_(device), rank_(rank) {}
  // The messages of a group, with those that carry clocks.
  std::span<const SendRecv> with_clocks(std::span<const SendRecv>);
  void spend(const Agreement&);  // their time, once they have moved

 private:
  device::Device& device_;
  const Rank rank_;
  device::RankClock own_;
  std::vector<device::RankClock> senders_;  // by message
  std::vector<SendRecv> messages_;
  SendRecv largest_;  // from == to: none
};

}  // namespace trellis::ccl
