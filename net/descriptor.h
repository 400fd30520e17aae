// Owns a file descriptor, and says how many of them a process may have (RLIMIT_NOFILE).
#pragma once

#include <cstddef>
#include <utility>

namespace trellis::net {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// The largest number of a std::size_t where there is no limit.
std::size_t descriptor_limit();
// How many of `limit` descriptors may be held by connections that have said nothing yet: 1 in 32, from 4 to 64.
std::size_t most_silent(std::size_t limit);

}  // namespace trellis::net
