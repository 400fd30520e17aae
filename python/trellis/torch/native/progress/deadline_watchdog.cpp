#include "trellis/torch/native/progress/deadline_watchdog.h"

#include "trellis/torch/native/progress/work.h"

namespace trellis::process_group {

// The thread is woken only for a deadline before all others, and not by each of many messages with the same timeout. If
// it wakes too early, it looks again.
void DeadlineWatchdog::add(Moment moment, c10::intrusive_ptr<TorchWork> operation) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  TorchWork* const key = operation.get();
  pending_.emplace(std::pair(moment, key), std::move(operation));
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  if (moment < wakes_) changed_.notify_all();
}

void DeadlineWatchdog::remove(Moment moment, TorchWork* operation) {
  c10::intrusive_ptr<TorchWork> removed;  // its tensors are given back outside the lock
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find({moment, operation});
  if (found == pending_.end()) return;
  removed = std::move(found->second);
  pending_.erase(found);
}

void DeadlineWatchdog::serve() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (pending_.empty()) {
      if (wakes_ <= std::chrono::steady_clock::now()) wakes_ = Moment::max();
    } else {
      wakes_ = pending_.begin()->first.first;
    }
    if (wakes_ > std::chrono::steady_clock::now()) {
      if (wakes_ == Moment::max())
        changed_.wait(lock);
      else
        changed_.wait_until(lock, wakes_);
      continue;
    }
    c10::intrusive_ptr<TorchWork> late = std::move(pending_.begin()->second);
    pending_.erase(pending_.begin());
    lock.unlock();
    late->expire();
    late.reset();
    lock.lock();
  }
}

void DeadlineWatchdog::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  if (!thread_.joinable()) return;
  std::thread thread = std::move(thread_);
  lock.unlock();
  thread.join();
  pending_.clear();
}

}  // namespace trellis::process_group
