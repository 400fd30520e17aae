// Handles: numbers in the form of pointers. No number is used twice, so a handle that was freed, or never given out, is
// recognized without reading memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/libnrt/status_error.h"

namespace trellis::device::nrt {

std::uintptr_t next_handle();  // of the process

template <class Object>
class HandleTable {
 public:
  explicit HandleTable(std::string_view what) : what_(what) {}

  template <class Pointer>
  Pointer add(std::shared_ptr<Object> object) {
    const std::uintptr_t number = next_handle();
    const std::unique_lock lock(mutex_);
    objects_.emplace(number, std::move(object));
    return reinterpret_cast<Pointer>(number);
  }
  std::shared_ptr<Object> get(const void* handle, Status otherwise = Status::invalid) const {
    expect_given(handle, what_);
    const std::shared_lock lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found != objects_.end()) return found->second;
    refuse(otherwise, "{} {} does not exist: it was freed, or never given out", what_, handle);
  }
  std::shared_ptr<Object> take(const void* handle, Status otherwise = Status::invalid) {
    expect_given(handle, what_);
    const std::unique_lock lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found == objects_.end())
      refuse(otherwise, "{} {} does not exist: it was freed, or never given out", what_, handle);
    std::shared_ptr<Object> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  // Removes and returns all objects for which which(object) is true.
  template <class Which>
  std::vector<std::shared_ptr<Object>> take_if(Which which) {
    std::vector<std::shared_ptr<Object>> out;
    const std::unique_lock lock(mutex_);
    std::erase_if(objects_, [&](const auto& one) {
      if (!which(*one.second)) return false;
      out.push_back(one.second);
      return true;
    });
    return out;
  }
  std::vector<std::shared_ptr<Object>> all() const {
    const std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<Object>> out;
    for (const auto& [number, object] : objects_) out.push_back(object);
    return out;
  }
  std::size_t size() const {
    const std::shared_lock lock(mutex_);
    return objects_.size();
  }

 private:
  const std::string_view what_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uintptr_t, std::shared_ptr<Object>> objects_;
};

}  // namespace trellis::device::nrt
