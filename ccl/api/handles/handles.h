// Handles of C programs, with use-after-free detection: invalid and destroyed handles, and those of the process that
// this one was forked from, are recognized by their numbers. A table lives as long as its process.
#pragma once

#include <tuple>

#include "ccl/api/handles/handle_slots.h"

namespace trellis::ccl::api {

template <class T>
class Handles {
 private:
  using Slot = HandleSlot<T>;

 public:
  Handles(std::uint16_t tag, const char* kind) : numbers_(tag, kind), slots_(numbers_.first_generation()) {}

  // Keeps the object alive while this exists.
  class Use {
   public:
    Use(Handles& of, Slot& slot, std::uint32_t index) : of_(of), slot_(slot), index_(index) {}
    ~Use() { of_.leave(slot_, index_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    T* operator->() const { return slot_.object.get(); }
    T& operator*() const { return *slot_.object; }
    std::shared_ptr<T> share() const { return slot_.object; }

   private:
    Handles& of_;
    Slot& slot_;
    const std::uint32_t index_;
  };

  void* add(std::shared_ptr<T> object) {
    const auto [index, generation] = slots_.fill(std::move(object));
    return numbers_.handle(index, generation);
  }

  // Throws invalid_argument when there is no such object.
  Use use(const void* handle) {
    const auto [slot, generation, index] = find(handle);
    ++slot->users;
    if (slot->generation == generation) return Use(*this, *slot, index);
    leave(*slot, index);
    numbers_.refuse(handle);
  }

  // Invalidates the handle; returns when no call uses the object through it.
  std::shared_ptr<T> take(const void* handle) {
    const auto [slot, index] = invalidate(handle);
    for (std::uint64_t users = slot->users; users != 0; users = slot->users) slot->users.wait(users);
    std::shared_ptr<T> object = std::move(slot->object);
    slots_.free(index);
    return object;
  }

  // The same without waiting: calls in other threads may still use the object, and keep it until they end.
  std::shared_ptr<T> retire(const void* handle) {
    const auto [slot, index] = invalidate(handle);
    std::shared_ptr<T> object = slot->object;
    slot->retired = true;
    free_retired(*slot, index);
    return object;
  }

 private:
  void leave(Slot& slot, std::uint32_t index) {
    // take() and retire() make the generation even and then check the users; this does it in the opposite order, so at
    // least one of the two threads sees what the other has done.
    if (--slot.users != 0 || slot.generation % 2 != 0) return;
    slot.users.notify_all();
    free_retired(slot, index);
  }

  std::pair<Slot*, std::uint32_t> invalidate(const void* handle) {
    auto [slot, generation, index] = find(handle);
    if (!slot->generation.compare_exchange_strong(generation, generation + 1)) numbers_.refuse(handle);
    return {slot, index};
  }

  // Whoever finds a retired slot without users frees it. Its handle is invalid already, so it gets no new users.
  void free_retired(Slot& slot, std::uint32_t index) {
    while (slot.users == 0 && slot.retired.exchange(false)) {
      if (slot.users != 0) {  // between the two checks, the slot was freed and got another object, which is in use
        slot.retired = true;
        continue;
      }
      const std::shared_ptr<T> last = std::move(slot.object);  // destroyed after the slot is free
      return slots_.free(index);
    }
  }

  std::tuple<Slot*, std::uint64_t, std::uint32_t> find(const void* handle) {
    const std::uint32_t index = HandleEncoding::index_in(handle);
    const std::uint64_t generation = HandleEncoding::generation_in(handle);
    Slot* const slot = numbers_.has_tag(handle) && generation % 2 == 1 ? slots_.find(index) : nullptr;
    if (slot == nullptr) numbers_.refuse(handle);
    return {slot, generation, index};
  }

  const HandleEncoding numbers_;
  HandleSlots<T> slots_;
};

}  // namespace trellis::ccl::api
