// A device's memory as other parts of a process see it: the window, shared, attached and exported memory.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

namespace trellis::device {

// The address range that allocate() serves, backed by a file that other processes can map; fd -1: they cannot map it.
struct Window {
  int fd = -1;
  std::byte* base = nullptr;
  std::size_t bytes = 0;
};

// Where a range of bytes is in the window's file: the first `outside` bytes are not in it, the next `bytes` are at
// `offset`.
struct InWindow {
  std::size_t outside = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// The caller's own memory, which is in the window too until this object is destroyed.
class Shared {
 public:
  virtual ~Shared() = default;
  virtual std::size_t bytes() const = 0;  // bytes that peers can read there; 0: this kind of memory cannot be shared
};

// The caller's own memory, which the device uses until this object is destroyed.
class Attached {
 public:
  virtual ~Attached() = default;
  virtual void* data() const = 0;
  virtual std::size_t bytes() const = 0;
};

// A range of memory as a file that can be mapped, or registered with a fabric.
class Exported {
 public:
  enum class Kind : unsigned char { mapped_file, dmabuf };
  Exported(Kind kind, int fd, std::size_t offset, std::size_t bytes)
      : kind_(kind), fd_(fd), offset_(offset), bytes_(bytes) {}
  Exported(Exported&& other) noexcept
      : kind_(other.kind_), fd_(std::exchange(other.fd_, -1)), offset_(other.offset_), bytes_(other.bytes_) {}
  Exported& operator=(Exported&&) = delete;
  ~Exported();  // closes the file

  Kind kind() const { return kind_; }
  int fd() const { return fd_; }
  std::size_t offset() const { return offset_; }  // of the range in the file
  std::size_t bytes() const { return bytes_; }

 private:
  Kind kind_;
  int fd_;
  std::size_t offset_, bytes_;
};

struct MemoryPiece {
  const std::byte* at = nullptr;
  std::size_t bytes = 0;
};
// Throws invalid_argument unless `range` lies within the piece `allocated`; null: it is in no memory of this device.
void expect_within(std::string_view what, const MemoryPiece& range, const MemoryPiece* allocated);

}  // namespace trellis::device
