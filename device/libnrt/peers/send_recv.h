// Messages between cores, as nrt_async_sendrecv_* has them: open a core, make endpoints of its channels, close it.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "device/messages/tcp_messenger.h"

namespace trellis::device::nrt {

class PeerSendRecv {
 public:
  void open(int core, std::chrono::milliseconds timeout);
  void close(int core);  // refuses while something is not connected or not done
  void close_all();
  std::shared_ptr<MessageEndpoint> pair(bool sends, const PeerCore& peer, int core);
  void expect_open(int core);

 private:
  struct Core {
    std::shared_ptr<TcpMessenger> messages;  // null: closed
    bool failed = false;
  };
  std::shared_ptr<TcpMessenger> messages_of(int core);

  std::mutex mutex_;
  std::map<int, Core> cores_;
};

}  // namespace trellis::device::nrt
