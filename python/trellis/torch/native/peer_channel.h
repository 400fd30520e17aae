// One direction between two ranks of a group: a communicator of these two, and the thread that works on it.
#pragma once

#include <memory>

#include "ccl/communicator.h"
#include "trellis/torch/native/progress/torch_errors.h"
#include "trellis/torch/native/progress/worker.h"
#include "trellis/torch/native/torch_store_adapter.h"

namespace trellis::process_group {

struct MessageHeader {
  std::int64_t tag = 0;
  std::uint64_t bytes = 0;
  std::int64_t type = 0;  // an at::ScalarType
};

class PeerChannel {
 public:
  PeerChannel(c10::intrusive_ptr<c10d::Store>, const Membership&, int from, int to, const ccl::Config&);
  ~PeerChannel() { stop(); }

  // These run on the worker, and their errors name ranks of the group.
  void send(MessageHeader, const void* data);
  MessageHeader header();
  void receive(void* data, std::uint64_t bytes);

  Worker& worker() { return worker_; }
  void abort();  // from any thread: what waits here fails
  void stop();   // what it has sent still arrives; what is under way fails

 private:
  template <class Run>
  void run(Run&&);
  void connect();
  void meet();

  TorchStoreAdapter store_;
  const int from_, to_, me_;
  const ccl::Config config_;
  std::mutex mutex_;  // guards the making of comm_
  std::unique_ptr<ccl::Communicator> comm_;
  bool aborted_ = false;
  Worker worker_;
};

}  // namespace trellis::process_group
