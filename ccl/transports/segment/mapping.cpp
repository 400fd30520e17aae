#include "ccl/transports/segment/mapping.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace trellis::ccl {

bool AddressSpaceBudget::take(std::size_t bytes) {
  for (std::size_t taken = taken_; bytes <= most_ && taken <= most_ - bytes;)
    if (taken_.compare_exchange_weak(taken, taken + bytes)) return true;
  return false;
}

AddressSpaceBudget& room_for_windows() {
  static AddressSpaceBudget room(std::size_t{1} << 46);
  return room;
}

Mapping::Mapping(int fd, std::size_t bytes, int protection) : Mapping(of(fd, bytes, protection)) {
  if (base_ == nullptr)
    throw std::system_error(errno, std::generic_category(), fmt::format("mmap of {} shared bytes", bytes));
}

Mapping Mapping::of(int fd, std::size_t bytes, int protection, AddressSpaceBudget* room) {
  if (room != nullptr && !room->take(bytes)) {
    errno = ENOMEM;
    return {};
  }
  void* const base = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) {
    if (room != nullptr) room->give_back(bytes);
    return {};
  }
  Mapping m;
  m.base_ = static_cast<std::byte*>(base);
  m.bytes_ = bytes;
  m.room_ = room;
  return m;
}

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      room_(std::exchange(other.room_, nullptr)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(room_, other.room_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ == nullptr) return;
  munmap(base_, bytes_);
  if (room_ != nullptr) room_->give_back(bytes_);
}

}  // namespace trellis::ccl
