// Handles of C programs, with use-after-free detection: invalid and destroyed handles, and those of the process that
// this one was forked from, are recognized by their numbers. A table lives as long as its process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "ccl/api/handles/handle_numbers.h"

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
  Handles(std::uint16_t tag, const char* kind) : numbers_(tag, kind) {}

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
    return numbers_.handle(index, ++slot.generation);
  }

  // Throws invalid_argument when there is no such object.
  Use use(const void* handle) {
    const auto [slot, generation, index] = find(handle);
    ++slot->users;
    if (slot->generation == generation) return Use(*slot);
    leave(*slot);
    numbers_.refuse(handle);
  }

  // Invalidates the handle; returns when no call uses the object through it.
  std::shared_ptr<T> take(const void* handle) {
    auto [slot, generation, index] = find(handle);
    if (!slot->generation.compare_exchange_strong(generation, generation + 1)) numbers_.refuse(handle);
    for (std::uint64_t users = slot->users; users != 0; users = slot->users) slot->users.wait(users);
    std::shared_ptr<T> object = std::move(slot->object);
    const std::lock_guard lock(mutex_);
    if (generation + 1 < HandleNumbers::most_generations) free_.push_back(index);
    return object;
  }

 private:
  static constexpr std::size_t slots_in_block = 1024;

  static void leave(Slot& slot) {
    // Notify take(), which has made the generation even before it checks the users.
    if (--slot.users == 0 && slot.generation % 2 == 0) slot.users.notify_all();
  }

  std::tuple<Slot*, std::uint64_t, std::uint32_t> find(const void* handle) {
    const std::uint32_t index = HandleNumbers::index_in(handle);
    const std::uint64_t generation = HandleNumbers::generation_in(handle);
    Slot* const block =
        numbers_.has_tag(handle) && generation % 2 == 1 ? blocks_[index / slots_in_block].load() : nullptr;
    if (block == nullptr) numbers_.refuse(handle);
    return {block + index % slots_in_block, generation, index};
  }

  void grow() {
    std::size_t b = 0;
    while (b < blocks_.size() && blocks_[b].load() != nullptr) ++b;
    if (b == blocks_.size()) throw std::bad_alloc();
    Slot* const block = new Slot[slots_in_block];
    for (std::size_t i = 0; i < slots_in_block; ++i) block[i].generation = numbers_.first_generation();
    blocks_[b] = block;
    for (std::size_t i = slots_in_block; i-- > 0;) free_.push_back(static_cast<std::uint32_t>(b * slots_in_block + i));
  }

  const HandleNumbers numbers_;
  std::mutex mutex_;
  std::array<std::atomic<Slot*>, HandleNumbers::slots / slots_in_block> blocks_ = {};
  std::vector<std::uint32_t> free_;
};

}  // namespace trellis::ccl::api
