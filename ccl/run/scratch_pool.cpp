#include "ccl/run/scratch_pool.h"

#include <algorithm>
#include <map>
#include <utility>

#include "device/fork_safe_singleton.h"

namespace trellis::ccl {
namespace {

constexpr std::size_t most_own = std::size_t{64} << 10;

}  // namespace

void* ScratchBuffer::of(std::size_t bytes) {
  if (bytes <= this->bytes()) return data_;
  device_.release(std::exchange(data_, nullptr));
  bytes_ = 0;
  data_ = device_.allocate(bytes, "scratch of communicators");
  bytes_ = bytes;
  return data_;
}

std::shared_ptr<ScratchPool> ScratchPool::of(device::Device& device) {
  struct Known {
    std::mutex mutex;
    std::map<const device::Device*, std::weak_ptr<ScratchPool>> pool;
  };
  auto& [mutex, known] = device::of_this_process([] { return new Known; });
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& one) { return one.second.expired(); });
  auto pool = known[&device].lock();
  if (!pool) known[&device] = pool = std::make_shared<ScratchPool>(device);
  return pool;
}

std::unique_ptr<ScratchBuffer> ScratchPool::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return std::make_unique<ScratchBuffer>(device_);
  auto at = std::ranges::lower_bound(free_, bytes, {}, &ScratchBuffer::bytes);
  if (at == free_.end()) --at;
  std::unique_ptr<ScratchBuffer> room = std::move(*at);
  free_.erase(at);
  return room;
}

void ScratchPool::give(std::unique_ptr<ScratchBuffer> room) {
  const std::lock_guard lock(mutex_);
  free_.insert(std::ranges::lower_bound(free_, room->bytes(), {}, &ScratchBuffer::bytes), std::move(room));
}

void* BorrowedScratch::of(std::size_t bytes) {
  if (bytes <= most_own) return own_.of(bytes);
  if (!lent_) lent_ = pool_->take(bytes);
  if (bytes > most_.load(std::memory_order_relaxed)) most_.store(bytes, std::memory_order_relaxed);
  return lent_->of(bytes);
}

}  // namespace trellis::ccl
