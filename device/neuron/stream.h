// A stream over the runtime's own queues. A copy or a program is queued at once, in the caller's thread, if all
// unfinished work before it is in the same queue; functions of the host, and work for another queue, wait in a thread.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "device/neuron/queue_completion.h"
#include "device/streams/thread_stream.h"

namespace trellis::device {

class NeuronStream : public Stream {
 public:
  NeuronStream(std::shared_ptr<NeuronRuntime>, int core, int queue);  // `queue`: which one, where a unit has several
  ~NeuronStream() override;
  void submit(std::function<void()> work) override;
  bool idle() const override;
  void synchronize() override;
  bool failed() const override;  // a failure in a queue of the device shows once a caller waits

  // Work for a queue of this unit. What the queue holds already is not taken back when an earlier piece fails.
  struct Queued {
    nrt::ExecutionUnit unit = nrt::ExecutionUnit::tensor_op;
    std::function<nrt::Status(int queue, nrt::ErrorTracker*, nrt::Sequence*)> hand_in;
    std::string_view function;            // of libnrt, which hand_in calls
    std::function<void()> after = [] {};  // called once the work is done, and then destroyed
  };
  void add(Queued);

 private:
  struct Pending {
    nrt::ExecutionUnit unit;
    nrt::Sequence sequence;
    std::function<void()> after;
  };
  bool has_failed() const { return thread_ != nullptr && thread_->failed(); }
  bool try_now(Queued&);  // false: the queue is full, or another unit's work is not done
  void wait_and_hand_in(Queued&);
  void settle();  // waits for the queues, and throws what they failed with
  void forget_done() const;
  void to_thread(std::function<void()>);

  const std::shared_ptr<NeuronRuntime> runtime_;
  const int core_, queue_;
  QueueErrors errors_;
  mutable std::mutex mutex_;
  mutable std::deque<Pending> pending_;  // of one unit
  std::string_view last_function_ = "nrta_tensor_copy";
  std::atomic<int> in_thread_ = 0;
  std::unique_ptr<ThreadStream> thread_;  // last: its work uses all members above; null: it was not needed yet
};

}  // namespace trellis::device
