// Work that was queued on a NeuronCore: waiting for it, and what it failed with.
#pragma once

#include <chrono>
#include <mutex>

#include "device/neuron/runtime.h"

namespace trellis::device {

inline constexpr auto queue_patience = std::chrono::minutes(5);  // how long to wait for one piece of work

bool is_done(const NeuronRuntime&, nrt::Sequence);
void wait_for(const NeuronRuntime&, nrt::Sequence, std::chrono::milliseconds most);  // throws system_error

class QueueErrors {
 public:
  QueueErrors(const NeuronRuntime&, int core);
  ~QueueErrors();
  QueueErrors(const QueueErrors&) = delete;
  QueueErrors& operator=(const QueueErrors&) = delete;
  nrt::ErrorTracker* tracker() const { return tracker_; }
  void check(std::string_view function);  // throws the first error since the last check

 private:
  const NeuronRuntime& runtime_;
  nrt::ErrorTracker* tracker_ = nullptr;
  std::mutex mutex_;
  std::size_t seen_ = 0;
};

}  // namespace trellis::device
