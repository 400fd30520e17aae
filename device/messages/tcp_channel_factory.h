// A device's channels over TCP. With the first channel, the device begins to listen at the port of its core.
#pragma once

#include <memory>
#include <mutex>

#include "device/device.h"
#include "device/messages/tcp_messenger.h"

namespace trellis::device {

// A forked process has none of its parent's channels: there, calls throw Forked, and destructors do nothing.
class TcpChannelFactory : public ChannelFactory {
 public:
  explicit TcpChannelFactory(Device& device) : device_(device) {}
  std::unique_ptr<Channel> connect(const PeerCore& peer) override { return channel(true, peer); }
  std::unique_ptr<Channel> accept(const PeerCore& peer) override { return channel(false, peer); }

 private:
  std::unique_ptr<Channel> channel(bool sends, const PeerCore&);

  Device& device_;
  std::mutex mutex_;
  std::shared_ptr<TcpMessenger> messages_;
};

// While this lives, copies take no simulated time: spend_message() takes a message's time as a whole.
class SimulatedTimePause {
 public:
  explicit SimulatedTimePause(Device* device) : time_(device != nullptr ? device->simulated_time() : nullptr) {
    if (time_ != nullptr) time_->hold();
  }
  ~SimulatedTimePause() {
    if (time_ != nullptr) time_->release();
  }
  SimulatedTimePause(const SimulatedTimePause&) = delete;
  SimulatedTimePause& operator=(const SimulatedTimePause&) = delete;

 private:
  SimulatedTime* const time_;
};

// Charges the receiving device for a message that has arrived: moves its simulated clock to no earlier than the
// sending, and adds the machine's time for the transfer between the two cores.
void spend_message(Device&, const RankClock& sent, std::size_t bytes);

}  // namespace trellis::device
