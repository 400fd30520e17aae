// The slots of a handle table, which never move. Each holds an object, its generation, and the number of its users.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "ccl/api/handles/handle_encoding.h"

namespace trellis::ccl::api {

template <class T>
struct HandleSlot {
  std::atomic<std::uint64_t> generation = 0;  // odd: alive
  std::atomic<std::uint64_t> users = 0;
  std::atomic<bool> retired = false;  // the last user frees the slot
  std::shared_ptr<T> object = {};
};

template <class T>
class HandleSlots {
 public:
  explicit HandleSlots(std::uint64_t first_generation) : first_generation_(first_generation) {}

  HandleSlot<T>* find(std::uint32_t index) const {  // null: there is none of this index
    HandleSlot<T>* const block = blocks_[index / slots_in_block].load();
    return block == nullptr ? nullptr : block + index % slots_in_block;
  }

  // Stores the object in a free slot. Returns the slot's index and its new generation.
  std::pair<std::uint32_t, std::uint64_t> fill(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) grow();
    const std::uint32_t index = free_.back();
    free_.pop_back();
    HandleSlot<T>& slot = *find(index);
    slot.object = std::move(object);
    return {index, ++slot.generation};
  }

  void free(std::uint32_t index) {
    const std::lock_guard lock(mutex_);
    if (find(index)->generation < HandleEncoding::most_generations) free_.push_back(index);
  }

 private:
  static constexpr std::size_t slots_in_block = 1024;

  void grow() {
    std::size_t b = 0;
    while (b < blocks_.size() && blocks_[b].load() != nullptr) ++b;
    if (b == blocks_.size()) throw std::bad_alloc();
    free_.reserve(blocks_.size() * slots_in_block);  // so that free() takes no memory
    auto* const block = new HandleSlot<T>[slots_in_block];
    for (std::size_t i = 0; i < slots_in_block; ++i) block[i].generation = first_generation_;
    blocks_[b] = block;
    for (std::size_t i = slots_in_block; i-- > 0;) free_.push_back(static_cast<std::uint32_t>(b * slots_in_block + i));
  }

  const std::uint64_t first_generation_;
  std::mutex mutex_;
  std::array<std::atomic<HandleSlot<T>*>, HandleEncoding::slots / slots_in_block> blocks_ = {};
  std::vector<std::uint32_t> free_;
};

}  // namespace trellis::ccl::api
