#include "ccl/api/handles/registered_buffers.h"

#include <utility>

#include "text/refuse.h"

namespace trellis::ccl::api {

void* RegisteredBuffers::add(std::size_t bytes, std::unique_ptr<Exposed> exposed) {
  const std::lock_guard lock(mutex_);
  all_.emplace(next_, One{bytes, std::move(exposed)});
  return reinterpret_cast<void*>(next_++);
}

void RegisteredBuffers::remove(const void* handle) {
  const std::lock_guard lock(mutex_);
  if (all_.erase(reinterpret_cast<std::uintptr_t>(handle)) == 0)
    text::refuse("{} is no registration of this communicator, or one that was deregistered", handle);
}

RegisteredBuffers::Sum RegisteredBuffers::sum() const {
  const std::lock_guard lock(mutex_);
  Sum sum;
  for (const auto& [handle, one] : all_) {
    sum.bytes += one.bytes;
    sum.readable += one.exposed->readable_bytes();
  }
  return sum;
}

}  // namespace trellis::ccl::api
