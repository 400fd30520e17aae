// SharedMemoryArena's sharing of the caller's own memory: moves its pages into the arena's file and back.

#include <algorithm>
#include <cstdint>

#include "device/host/page_remapping.h"
#include "device/host/shared_memory_arena.h"
#include "device/memory_release_notifier.h"
#include "text/refuse.h"

namespace trellis::device {

namespace {

[[noreturn]] void refuse_given_back(const void* begin, std::size_t bytes) {
  text::refuse("share: {} bytes at {} were given back while they were shared", bytes, begin);
}

}  // namespace

class SharedMemoryArena::Sharing : public Shared {
 public:
  Sharing(SharedMemoryArena& arena, std::byte* begin, std::size_t bytes)
      : arena_(arena), begin_(begin), bytes_(bytes) {}
  ~Sharing() override {
    try {
      if (begin_ != nullptr) arena_.end_sharing(begin_);
    } catch (...) {  // the pages stay in the file, where their contents are the same
    }
  }
  std::size_t bytes() const override { return bytes_; }
  void hold(std::byte* begin) { begin_ = begin; }

 private:
  SharedMemoryArena& arena_;
  std::byte* begin_;  // start of the moved pages; null: none to move back
  const std::size_t bytes_;
};

InWindow SharedMemoryArena::find(const void* data, std::size_t bytes) const {
  if (inherited_.load(std::memory_order_relaxed)) return {.outside = bytes};
  const auto* const begin = static_cast<const std::byte*>(data);
  if (begin >= window_.base && begin < window_.base + window_.bytes) {
    const auto offset = static_cast<std::size_t>(begin - window_.base);
    return {0, offset, std::min(bytes, window_.bytes - offset)};
  }
  if (!any_moved_.load(std::memory_order_acquire)) return {.outside = bytes};
  const std::lock_guard lock(mutex_);
  auto at = moved_.upper_bound(const_cast<std::byte*>(begin));
  if (at != moved_.begin())
    if (const auto& [first, moved] = *std::prev(at); begin < first + moved.bytes) {
      const auto within = static_cast<std::size_t>(begin - first);
      return {0, moved.offset + within, std::min(bytes, moved.bytes - within)};
    }
  if (at == moved_.end() || at->first >= begin + bytes) return {.outside = bytes};
  const auto outside = static_cast<std::size_t>(at->first - begin);
  return {outside, at->second.offset, std::min(bytes - outside, at->second.bytes)};
}

// The entry of moved pages that contains this whole range; end() if there is none.
SharedMemoryArena::MovedPages::iterator SharedMemoryArena::moved_with(std::byte* begin, std::size_t bytes) {
  const auto after = moved_.upper_bound(begin);
  if (after == moved_.begin()) return moved_.end();
  const auto found = std::prev(after);
  return begin + bytes <= found->first + found->second.bytes ? found : moved_.end();
}

// The last entry of moved pages with some of this range; end() if there is none.
SharedMemoryArena::MovedPages::iterator SharedMemoryArena::moved_within(std::byte* begin, std::size_t bytes) {
  const auto after = moved_.lower_bound(begin + bytes);
  if (after == moved_.begin()) return moved_.end();
  const auto found = std::prev(after);
  return begin < found->first + found->second.bytes ? found : moved_.end();
}

std::unique_ptr<Shared> SharedMemoryArena::share(void* data, std::size_t bytes) {
  if (inherited_) return std::make_unique<Sharing>(*this, nullptr, 0);
  auto* const wanted = static_cast<std::byte*>(data);
  if (wanted >= window_.base && wanted < window_.base + window_.bytes)
    return std::make_unique<Sharing>(*this, nullptr, find(data, bytes).bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::byte* const begin = wanted + (page - address % page) % page;
  std::byte* const end = wanted + bytes - std::min(bytes, (address + bytes) % page);
  if (end <= begin) return std::make_unique<Sharing>(*this, nullptr, 0);
  const auto size = static_cast<std::size_t>(end - begin);
  const std::lock_guard moving(sharing_);
  {
    const std::lock_guard lock(mutex_);
    if (const auto again = moved_with(begin, size); again != moved_.end()) {
      if (!are_of_file(again->first, again->second.bytes, window_.fd, again->second.offset))
        refuse_given_back(again->first, again->second.bytes);
      ++again->second.uses;
      return std::make_unique<Sharing>(*this, again->first, size);
    }
  }
  if (!are_private(begin, size)) return std::make_unique<Sharing>(*this, nullptr, 0);
  {
    const std::lock_guard lock(mutex_);
    if (const auto stale = moved_within(begin, size); stale != moved_.end())
      refuse_given_back(stale->first, stale->second.bytes);
  }
  auto* const pages = static_cast<std::byte*>(allocate(size));
  const auto offset = static_cast<std::size_t>(pages - window_.base);
  watched_memory().moves(begin, size);
  try {
    auto sharing = std::make_unique<Sharing>(*this, nullptr, size);
    const std::lock_guard lock(mutex_);
    const auto at = moved_.emplace(begin, Moved{size, offset, 1}).first;
    try {
      move_to_file(begin, size, window_.fd, offset, pages);
    } catch (...) {
      moved_.erase(at);
      throw;
    }
    any_moved_.store(true, std::memory_order_release);
    sharing->hold(begin);
    return sharing;
  } catch (...) {
    release(pages);
    throw;
  }
}

void SharedMemoryArena::end_sharing(std::byte* begin) {
  const std::lock_guard moving(sharing_);
  Moved moved;
  {
    const std::lock_guard lock(mutex_);
    const auto at = moved_.find(begin);
    if (--at->second.uses != 0) return;
    moved = at->second;
    moved_.erase(at);
    any_moved_.store(!moved_.empty(), std::memory_order_release);
  }
  if (inherited_) return;  // the pages are private already
  watched_memory().moves(begin, moved.bytes);
  if (move_from_file(begin, moved.bytes, window_.fd, moved.offset)) release(window_.base + moved.offset);
}

}  // namespace trellis::device
