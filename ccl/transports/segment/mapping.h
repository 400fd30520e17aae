// A file that processes share, mapped into this one.
#pragma once

#include <atomic>
#include <cstddef>

namespace trellis::ccl {

// Limits how many bytes of address space some mappings take together.
class AddressSpaceBudget {
 public:
  explicit AddressSpaceBudget(std::size_t most) : most_(most) {}
  bool take(std::size_t bytes);  // false: not so many are left
  void give_back(std::size_t bytes) { taken_ -= bytes; }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> taken_ = 0;
};

// The budget for mapping peers' windows, for all communicators of the process: half of the addresses that Linux gives
// it on x86-64. The program needs the others.
AddressSpaceBudget& room_for_windows();

class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, std::size_t bytes, int protection);  // throws system_error
  // Maps the file. Empty, with errno, if it cannot be mapped; ENOMEM if there is no room for it.
  static Mapping of(int fd, std::size_t bytes, int protection, AddressSpaceBudget* = nullptr);
  Mapping(Mapping&&) noexcept;
  Mapping& operator=(Mapping&&) noexcept;
  ~Mapping();
  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  AddressSpaceBudget* room_ = nullptr;
};

}  // namespace trellis::ccl
