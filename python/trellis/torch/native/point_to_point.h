// Sends and receives of a group, matched by tag. Every ordered pair of ranks that talks has a communicator of its own,
// made when it is first used, so that sends, receives and collectives do not wait for each other.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "ccl/config.h"
#include "trellis/torch/native/progress/work.h"
#include "trellis/torch/native/tensors/flat_tensors.h"
#include "trellis/torch/native/torch_store_adapter.h"

namespace trellis::process_group {

using Pending = c10::intrusive_ptr<TorchWork>;

class PeerChannel;

class PointToPoint {
 public:
  PointToPoint(c10::intrusive_ptr<c10d::Store>, std::shared_ptr<const Membership>, ccl::Config);
  ~PointToPoint() { stop(); }

  void send(Pending, at::Tensor, int to, int tag);
  void receive(Pending, at::Tensor, int from, int tag);  // from < 0: any rank
  void stop();                                           // fails all operations that have not ended

 private:
  struct Posted {
    Pending work;
    at::Tensor tensor;
    int from = -1, tag = 0;
  };
  struct Message {
    int from = 0, tag = 0;
    at::ScalarType type = at::ScalarType::Undefined;
    std::vector<std::byte> bytes;
  };
  bool matches(const Posted& p, int from, int tag) const { return p.tag == tag && (p.from < 0 || p.from == from); }
  std::optional<Posted> take(int from, int tag);
  bool others_wait_for(int from) const;
  void withdraw(const TorchWork*);
  void listen(int from, PeerChannel&);
  void deliver_next(int from, PeerChannel&);
  void give(const Posted&, const Message&) const;
  void lose(int from, std::exception_ptr);
  const std::shared_ptr<PeerChannel>& channel(int from, int to);

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::shared_ptr<const Membership> group_;
  const ccl::Config config_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Posted> waiting_;              // receives, in the order of their calls
  std::deque<Message> arrived_;             // messages that nobody asked for yet
  std::map<int, std::exception_ptr> lost_;  // ranks from which no more messages will come
  std::map<std::pair<int, int>, std::shared_ptr<PeerChannel>> channels_;
  bool stopping_ = false;
};

}  // namespace trellis::process_group
