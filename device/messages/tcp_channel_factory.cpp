#include "device/messages/tcp_channel_factory.h"

#include <utility>

#include "device/fork_mark.h"
#include "device/topology.h"

namespace trellis::device {
namespace {

constexpr auto patience = std::chrono::seconds(30);  // how long to wait for a peer

class TcpMessage : public MessageHandle {
 public:
  TcpMessage(Device* into, std::shared_ptr<MessageRequest> request) : into_(into), request_(std::move(request)) {}
  bool done() override {
    if (!request_->done()) return false;
    if (into_ != nullptr) spend_message(*std::exchange(into_, nullptr), request_->parcel.sent, bytes());
    return true;
  }
  std::size_t bytes() const override { return request_->parcel.bytes; }

 private:
  Device* into_;  // the receiving device, until it was charged the message's time; else null
  const std::shared_ptr<MessageRequest> request_;
};

class TcpChannel : public Channel {
 public:
  TcpChannel(Device& device, std::shared_ptr<TcpMessenger> messages, bool sends, const PeerCore& peer)
      : device_(device), messages_(std::move(messages)), end_(messages_->pair(sends, peer)) {}
  ~TcpChannel() override {
    if (!mark_.forked()) messages_->drop(end_);
  }
  TcpChannel(const TcpChannel&) = delete;
  TcpChannel& operator=(const TcpChannel&) = delete;

  bool connected() override {
    mark_.expect_same_process("channel");
    return end_->is_connected();
  }
  std::unique_ptr<MessageHandle> post(void* data, std::size_t bytes) override {
    mark_.expect_same_process("channel");
    Device* const d = &device_;
    const auto copied = [d](void* to, const void* from, std::size_t n) {
      const SimulatedTimePause free(d);
      d->copy(to, from, n);
    };
    auto request = end_->add({.bytes = bytes,
                              .read = [=](std::byte* to) { copied(to, data, bytes); },
                              .write = [=](const std::byte* from, std::size_t n) { copied(data, from, n); },
                              .sent = clock_of(*d)});
    return std::make_unique<TcpMessage>(end_->sends() ? nullptr : d, std::move(request));
  }

 private:
  const ForkMark mark_;
  Device& device_;
  const std::shared_ptr<TcpMessenger> messages_;
  const std::shared_ptr<MessageEndpoint> end_;
};

}  // namespace

std::unique_ptr<Channel> TcpChannelFactory::channel(bool sends, const PeerCore& peer) {
  const std::lock_guard lock(mutex_);
  if (messages_) std::get_deleter<DeletedByMaker>(messages_)->mark.expect_same_process("device");
  if (!messages_) messages_.reset(new TcpMessenger(device_.topology().core, patience), DeletedByMaker{});
  return std::make_unique<TcpChannel>(device_, messages_, sends, peer);
}

void spend_message(Device& device, const RankClock& sent, std::size_t bytes) {
  SimulatedTime* const time = device.simulated_time();
  if (time == nullptr) return;
  time->spend({.collective = "send_recv",
               .rank = 1,
               .ranks = 2,
               .bytes = bytes,
               .element = 1,
               .root = 0,
               .peer = 1,
               .clocks = {sent, time->now()}});
}

}  // namespace trellis::device
