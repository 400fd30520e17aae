#include "device/libnrt/peers/send_recv.h"

#include <utility>

#include "device/libnrt/status_error.h"

namespace trellis::device::nrt {

void PeerSendRecv::open(int core, std::chrono::milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  Core& c = cores_[core];
  if (c.failed) refuse(Status::failure, "core {}: its last nrt_async_sendrecv_close failed", core);
  if (c.messages) refuse(Status::failure, "core {} is initialised already", core);
  c.messages = std::make_shared<TcpMessenger>(core, timeout);
}

std::shared_ptr<TcpMessenger> PeerSendRecv::messages_of(int core) {
  const std::lock_guard lock(mutex_);
  const auto found = cores_.find(core);
  if (found == cores_.end() || !found->second.messages)
    refuse(Status::failure, "core {}: nrt_async_sendrecv_init was not called", core);
  return found->second.messages;
}

void PeerSendRecv::expect_open(int core) { messages_of(core); }

std::shared_ptr<MessageEndpoint> PeerSendRecv::pair(bool sends, const PeerCore& peer, int core) {
  return messages_of(core)->pair(sends, peer);
}

void PeerSendRecv::close(int core) {
  const std::string unfinished = messages_of(core)->unfinished();
  std::shared_ptr<TcpMessenger> ended;
  {
    const std::lock_guard lock(mutex_);
    Core& c = cores_[core];
    ended = std::move(c.messages);
    c.messages = nullptr;
    c.failed = !unfinished.empty();
  }
  ended.reset();
  if (!unfinished.empty()) refuse(Status::failure, "core {}: {}", core, unfinished);
}

void PeerSendRecv::close_all() {
  std::map<int, Core> all;
  const std::lock_guard lock(mutex_);
  all.swap(cores_);
}

}  // namespace trellis::device::nrt
