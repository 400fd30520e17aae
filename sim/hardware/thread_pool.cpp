#include "sim/hardware/thread_pool.h"

#include <utility>

#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/sysfs_topology.h"

namespace trellis::sim {

ThreadPool::ThreadPool(int count) {
  for (int worker = 1; worker < count; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
}

ThreadPool::~ThreadPool() {
  work_ = nullptr;
  ++round_;
  round_.notify_all();
}

void ThreadPool::serve(int worker) {
  for (std::uint32_t seen = 0;; ++seen) {
    round_.wait(seen);
    if (!work_) return;
    attempt(worker);
    if (--busy_ == 0) busy_.notify_one();
  }
}

void ThreadPool::attempt(int worker) {
  try {
    (*work_)(worker);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadPool::run(const std::function<void(int)>& work) {
  work_ = &work;
  busy_ = static_cast<std::uint32_t>(threads_.size());
  ++round_;
  round_.notify_all();
  attempt(0);
  for (std::uint32_t left = busy_; left != 0; left = busy_) busy_.wait(left);
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

int processors() { return kernels::within_quota(static_cast<int>(kernels::affinity().size()), kernels::quota_here()); }

}  // namespace trellis::sim
