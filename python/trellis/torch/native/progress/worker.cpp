#include "trellis/torch/native/progress/worker.h"

#include <stdexcept>

namespace trellis::process_group {

void Worker::later(Task task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) throw std::runtime_error("the process group has been shut down");
  tasks_.push_back(std::move(task));
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  changed_.notify_all();
}

bool Worker::ends_within(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return !busy_ && tasks_.empty(); });
}

void Worker::end() {
  const std::lock_guard lock(mutex_);
  busy_ = false;
  if (!tasks_.empty() || stopping_) changed_.notify_all();
}

void Worker::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !busy_ && (!tasks_.empty() || stopping_); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    task();
    task = nullptr;  // its tensors are given back outside the lock
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void Worker::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  if (!thread_.joinable()) {
    changed_.wait(lock, [this] { return !busy_; });
    return;
  }
  std::thread thread = std::move(thread_);
  lock.unlock();
  thread.join();
}

}  // namespace trellis::process_group
