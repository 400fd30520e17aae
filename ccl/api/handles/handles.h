// Handles of C programs, with use-after-free detection. A handle has an object's slot, its generation, and the kind's
// tag, which no address has, so invalid and destroyed handles are recognized. A table lives as long as its process; a
// forked child cannot use it.
#pragma once

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace trellis::ccl::api {

template <class T>
class Handles {
 private:
  struct Slot {
    std::atomic<std::uint64_t> generation = 0;  // odd: alive
    std::atomic<std::uint64_t> users = 0;
    std::shared_ptr<T> object = {};
  };

 public:
  Handles(std::uint16_t tag, const char* kind) : tag_(tag), kind_(kind) {}

  // Keeps the object alive while this exists.
  class Use {
   public:
    explicit Use(Slot& slot) : slot_(slot) {}
    ~Use() { leave(slot_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    T* operator->() const { return slot_.object.get(); }
    T& operator*() const { return *slot_.object; }
    std::shared_ptr<T> share() const { return slot_.object; }

   private:
    Slot& slot_;
  };

  void* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) grow();
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = blocks_[index / slots_in_block].load()[index % slots_in_block];
    slot.object = std::move(object);
    return handle_of(index, ++slot.generation);
  }

  // Throws invalid_argument when there is no such object.
  Use use(const void* handle) {
    const auto [slot, generation, index] = find(handle);
    ++slot->users;
    if (slot->generation == generation) return Use(*slot);
    leave(*slot);
    refuse(handle);
  }

  // Invalidates the handle; returns when no call uses the object through it.
  std::shared_ptr<T> take(const void* handle) {
    auto [slot, generation, index] = find(handle);
    if (!slot->generation.compare_exchange_strong(generation, generation + 1)) refuse(handle);
    for (std::uint64_t users = slot->users; users != 0; users = slot->users) slot->users.wait(users);
    std::shared_ptr<T> object = std::move(slot->object);
    const std::lock_guard lock(mutex_);
    if (generation + 1 < most_generations) free_.push_back(index);
    return object;
  }

 private:
  static constexpr int index_bits = 20, generation_bits = 28;
  static constexpr std::uint64_t most_generations = std::uint64_t{1} << generation_bits;
  static constexpr std::size_t slots_in_block = 1024;

  static void leave(Slot& slot) {
    // Notify take(), which has made the generation even before it checks the users.
    if (--slot.users == 0 && slot.generation % 2 == 0) slot.users.notify_all();
  }

  void* handle_of(std::uint32_t index, std::uint64_t generation) const {
    return reinterpret_cast<void*>(std::uint64_t{tag_} << 48 | generation << index_bits | index);
  }

  std::tuple<Slot*, std::uint64_t, std::uint32_t> find(const void* handle) {
    const auto bits = reinterpret_cast<std::uint64_t>(handle);
    const auto index = static_cast<std::uint32_t>(bits & ((1U << index_bits) - 1));
    const std::uint64_t generation = bits >> index_bits & (most_generations - 1);
    Slot* block = bits >> 48 == tag_ && generation % 2 == 1 ? blocks_[index / slots_in_block].load() : nullptr;
    if (block == nullptr) refuse(handle);
    return {block + index % slots_in_block, generation, index};
  }

  [[noreturn]] void refuse(const void* handle) const {
    if (handle == nullptr) throw std::invalid_argument(fmt::format("the {} is NULL", kind_));
    throw std::invalid_argument(fmt::format("{} is no {}, or one that was destroyed", handle, kind_));
  }

  void grow() {
    std::size_t b = 0;
    while (b < blocks_.size() && blocks_[b].load() != nullptr) ++b;
    if (b == blocks_.size()) throw std::bad_alloc();
    blocks_[b] = new Slot[slots_in_block];
    for (std::size_t i = slots_in_block; i-- > 0;) free_.push_back(static_cast<std::uint32_t>(b * slots_in_block + i));
  }

  const std::uint16_t tag_;
  const char* const kind_;
  std::mutex mutex_;
  std::array<std::atomic<Slot*>, (std::size_t{1} << index_bits) / slots_in_block> blocks_ = {};
  std::vector<std::uint32_t> free_;
};

}  // namespace trellis::ccl::api
