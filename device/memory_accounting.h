// Who holds how much of a device's memory, and the error when there is not enough.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::device {

// Pieces of memory that were allocated under one name.
struct MemoryHolder {
  std::string what;
  std::size_t bytes = 0;
  std::size_t pieces = 0;
  bool operator==(const MemoryHolder&) const = default;
};

struct MemoryUse {
  std::size_t used = 0;
  std::size_t limit = 0;                   // 0: none is known
  std::vector<MemoryHolder> holders = {};  // the largest first
};

// Says what was asked for, what is free, and who holds the rest.
class OutOfMemory : public std::bad_alloc {
 public:
  OutOfMemory(std::string_view device, std::string_view what, std::size_t bytes, const MemoryUse&);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// The allocations of one device. Thread-safe.
class MemoryAccount {
 public:
  explicit MemoryAccount(std::string device, std::size_t limit = 0) : device_(std::move(device)), limit_(limit) {}

  void reserve(std::size_t bytes, std::string_view what);               // throws OutOfMemory
  void cancel(std::size_t bytes);                                       // a reservation that led to nothing
  void hold(const void* at, std::size_t bytes, std::string_view what);  // the reserved memory has been allocated
  std::optional<std::size_t> release(const void* at);                   // its bytes; none: it is not held
  MemoryUse use() const;

 private:
  struct MemoryPiece {
    std::size_t bytes = 0;
    std::string what;
  };
  MemoryUse use_locked() const;

  const std::string device_;
  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::size_t used_ = 0;
  std::map<const std::byte*, MemoryPiece> pieces_;
};

}  // namespace trellis::device
