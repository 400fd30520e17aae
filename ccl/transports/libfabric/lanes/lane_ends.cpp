#include "ccl/transports/libfabric/lanes/lane_ends.h"

#include "ccl/transports/libfabric/lanes/lane_receiver.h"
#include "ccl/transports/libfabric/lanes/lane_sender.h"

namespace trellis::ccl::libfabric {

LaneEnds::LaneEnds(DataPath& path, Rank ranks, int lanes) : path_(path), lanes_(lanes) {
  senders_.resize(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(lanes));
  receivers_.resize(senders_.size());
}

LaneEnds::~LaneEnds() = default;

LaneSender& LaneEnds::sender(Rank to, int lane) {
  auto& end = senders_[index(to, lane)];
  if (!end) end = std::make_unique<LaneSender>(path_, to, lane);
  return *end;
}

LaneReceiver& LaneEnds::receiver(Rank from, int lane) {
  auto& end = receivers_[index(from, lane)];
  if (!end) end = std::make_unique<LaneReceiver>(path_, from, lane);
  return *end;
}

std::size_t LaneEnds::memory_bytes() const {
  std::size_t sum = 0;
  for (const auto& end : receivers_)
    if (end) sum += end->memory_bytes();
  return sum;
}

}  // namespace trellis::ccl::libfabric
