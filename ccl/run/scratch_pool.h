// Scratch buffers in device memory for the time of one operation. A communicator owns a small one. Larger ones are
// borrowed from the device's pool, so a process needs only as many as run at the same time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "device/noexcept_release.h"

namespace trellis::ccl {

// Device memory that grows on demand.
class ScratchBuffer {
 public:
  explicit ScratchBuffer(device::Device& device) : device_(device) {}
  ~ScratchBuffer() { device::give_back(device_, data_); }
  ScratchBuffer(const ScratchBuffer&) = delete;
  ScratchBuffer& operator=(const ScratchBuffer&) = delete;
  void* of(std::size_t bytes);
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // from any thread

 private:
  device::Device& device_;
  void* data_ = nullptr;
  std::atomic<std::size_t> bytes_ = 0;
};

// Shared by all communicators of a device; destroyed with the last of them.
class ScratchPool {
 public:
  static std::shared_ptr<ScratchPool> of(device::Device&);
  explicit ScratchPool(device::Device& device) : device_(device) {}
  std::unique_ptr<ScratchBuffer> take(std::size_t bytes);  // the smallest that is large enough, or else the largest
  void give(std::unique_ptr<ScratchBuffer>);

 private:
  device::Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ScratchBuffer>> free_;  // by size; among equal sizes the most recently returned first
};

// The scratch of one operation at a time. After a failed operation it is kept until the communicator is destroyed.
class BorrowedScratch {
 public:
  BorrowedScratch(device::Device& device, std::shared_ptr<ScratchPool> pool) : own_(device), pool_(std::move(pool)) {}
  void* of(std::size_t bytes);
  void end() {  // of the operation
    if (lent_) pool_->give(std::move(lent_));
  }
  // Its own, and the most that it borrowed; from any thread.
  std::size_t bytes() const { return own_.bytes() + most_.load(std::memory_order_relaxed); }

 private:
  ScratchBuffer own_;
  std::shared_ptr<ScratchPool> pool_;
  std::unique_ptr<ScratchBuffer> lent_;
  std::atomic<std::size_t> most_ = 0;  // bytes borrowed
};

}  // namespace trellis::ccl
