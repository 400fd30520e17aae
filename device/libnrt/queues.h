// Queues of work on execution units: each core has several of each kind of unit, and each runs in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "device/libnrt/status_error.h"
#include "device/nrt/structures.h"

namespace trellis::device::nrt {

// Errors of queued work, for one core.
class ErrorTrackerObject {
 public:
  explicit ErrorTrackerObject(std::uint32_t core) : core_(core) {}
  std::uint32_t core() const { return core_; }
  void add(Sequence, Status);
  // Valid as long as the tracker is.
  std::pair<const AsyncError*, std::size_t> list();

 private:
  const std::uint32_t core_;
  std::mutex mutex_;
  std::vector<AsyncError> errors_;
  std::deque<std::vector<AsyncError>> shown_;
};

class Queue {
 public:
  Queue(Device&, std::uint16_t id, std::size_t most_waiting);
  ~Queue() { close(); }

  void close();  // waits for the running work, drops the rest, and takes no more
  // Refuses when it is full or closed.
  Sequence add(std::function<void()> work, std::shared_ptr<ErrorTrackerObject> errors);
  Sequence last_completed() const;
  bool is_completed(std::uint64_t count) const;  // refuses a count that add() has not returned
  int completion_file(std::uint64_t count);      // a descriptor, readable once that is completed; the caller closes it
  bool wait_until_empty(std::chrono::milliseconds most);

 private:
  void run(const std::function<void()>& work, std::uint64_t count, ErrorTrackerObject* errors);
  Sequence sequence(std::uint64_t count) const { return (Sequence{id_} << sequence_count_bits) | count; }

  const std::uint16_t id_;
  const std::size_t most_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t handed_in_ = 0, completed_ = 0;
  bool closing_ = false;
  std::multimap<std::uint64_t, int> waiting_files_;  // by count: duplicates of completion_file()'s descriptors
  std::unique_ptr<Stream> stream_;                   // last: its work uses all members above
};

// All queues of the process, made at first use. A call may still hold one that has been closed.
class Queues {
 public:
  std::shared_ptr<Queue> of(Device&, std::uint32_t vnc, ExecutionUnit, int queue);  // refuses a queue the unit lacks
  std::shared_ptr<Queue> find(Sequence);                                            // null: no such queue
  std::shared_ptr<Queue> find(std::uint32_t vnc, ExecutionUnit, int queue);
  void close();

 private:
  std::mutex mutex_;
  std::map<std::uint16_t, std::shared_ptr<Queue>> queues_;
  bool closed_ = false;
};

int queues_of(ExecutionUnit);

}  // namespace trellis::device::nrt
