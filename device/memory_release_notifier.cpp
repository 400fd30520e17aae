#include "device/memory_release_notifier.h"

#include "device/fork_safe_singleton.h"

namespace trellis::device {

MemoryReleaseNotifier& watched_memory() {
  return of_this_process([] { return new MemoryReleaseNotifier; });
}

std::unique_ptr<MemoryReleaseNotifier::Watch> MemoryReleaseNotifier::watch(Told told) {
  const std::lock_guard lock(told_mutex_);
  return std::make_unique<Watch>(*this, told_.insert(told_.end(), std::move(told)));
}

MemoryReleaseNotifier::Watch::~Watch() {
  const std::lock_guard lock(memory_.told_mutex_);
  memory_.told_.erase(at_);
}

std::optional<MemoryReleaseNotifier::Range> MemoryReleaseNotifier::find(const void* data, std::size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(ranges_mutex_);
  auto at = ranges_.upper_bound(begin);
  if (at == ranges_.begin()) return std::nullopt;
  const Range& r = (--at)->second;
  const auto within = static_cast<std::size_t>(begin - r.begin);
  return within < r.bytes && bytes <= r.bytes - within ? std::optional(r) : std::nullopt;
}

void MemoryReleaseNotifier::begins(std::byte* begin, std::size_t bytes, Device* exporter) {
  const std::lock_guard lock(ranges_mutex_);
  ranges_[begin] = {begin, bytes, exporter};
}

void MemoryReleaseNotifier::ends(std::byte* begin, std::size_t bytes) {
  {
    const std::lock_guard lock(ranges_mutex_);
    ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(begin + bytes));
  }
  moves(begin, bytes);
}

void MemoryReleaseNotifier::moves(const std::byte* begin, std::size_t bytes) {
  const std::lock_guard lock(told_mutex_);
  for (const Told& told : told_) told(begin, bytes);
}

}  // namespace trellis::device
