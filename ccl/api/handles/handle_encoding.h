// A handle is a number made of a tag of its kind, a generation, and a slot's index. No address has such a tag in these
// bits. A forked process starts at other generations than its parent, so it recognizes the parent's handles.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "device/fork_mark.h"

namespace trellis::ccl::api {

class HandleEncoding {
 public:
  static constexpr int index_bits = 20, generation_bits = 28;
  static constexpr std::size_t slots = std::size_t{1} << index_bits;
  static constexpr std::uint64_t most_generations = std::uint64_t{1} << generation_bits;

  HandleEncoding(std::uint16_t tag, const char* kind) : tag_(tag), kind_(kind) {}

  std::uint64_t first_generation() const { return first_; }  // of a slot that was not used yet
  void* handle(std::uint32_t index, std::uint64_t generation) const {
    return reinterpret_cast<void*>(std::uint64_t{tag_} << 48 | generation << index_bits | index);
  }
  bool has_tag(const void* handle) const { return bits_of(handle) >> 48 == tag_; }
  static std::uint32_t index_in(const void* handle) {
    return static_cast<std::uint32_t>(bits_of(handle) & (slots - 1));
  }
  static std::uint64_t generation_in(const void* handle) {
    return bits_of(handle) >> index_bits & (most_generations - 1);
  }

  [[noreturn]] void refuse(const void* handle) const {
    if (handle == nullptr) throw std::invalid_argument(fmt::format("the {} is NULL", kind_));
    if (has_tag(handle) && generation_in(handle) / of_a_process != first_ / of_a_process)
      throw std::invalid_argument(fmt::format(
          "{} is no {} of this process, which was forked from the one that made it: use it in that process, or make "
          "one here",
          handle, kind_));
    throw std::invalid_argument(fmt::format("{} is no {}, or one that was destroyed", handle, kind_));
  }

 private:
  static constexpr std::uint64_t processes = 1024, of_a_process = most_generations / processes;
  static std::uint64_t bits_of(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }

  const std::uint16_t tag_;
  const char* const kind_;
  const std::uint64_t first_ = device::forks() % processes * of_a_process;
};

}  // namespace trellis::ccl::api
