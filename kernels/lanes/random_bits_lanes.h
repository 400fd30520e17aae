// The random bits of elements by vectors, as random.h has them one by one.
#pragma once

#include "kernels/lanes/load_store_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

TRELLIS_INLINE U random_mixed(U x, U inner) {
  x = (x ^ (x >> 16)) * half_mix_first;
  x = (x ^ (x >> 15) ^ inner) * half_mix_second;
  return x ^ (x >> 15);
}

// The random words for a group of elements in rows of sixteen. A group has 32 words, which serve four rows where a
// rounding takes 16 bits, and two rows otherwise.
class RandomBits {
 public:
  explicit RandomBits(const RandomKey& key) : key_(key) {}
  explicit RandomBits(const KernelArguments& s) : RandomBits(s.key) {}

  // Makes the words for one vector of each row of a group, whose first lane is `lane` of sixteen.
  TRELLIS_INLINE void make(std::uint64_t group, int lane) {
    constexpr std::uint32_t words = 32, groups = block_words / words;
    if (group / groups != number_) begin(group / groups);
    const auto word = static_cast<std::uint32_t>(group % groups) * words + static_cast<std::uint32_t>(lane);
    first_ = random_mixed(u_all(block_.start + word * block_.step) + steps_, u_all(block_.inner));
    second_ = random_mixed(u_all(block_.start + (word + 16) * block_.step) + steps_, u_all(block_.inner));
  }
  template <int rows>
  TRELLIS_INLINE U row(int r) const {
    const U words = r < rows / 2 ? first_ : second_;
    if constexpr (rows == 2) return words;
    return r % 2 == 0 ? words & 0xFFFF : words >> 16;
  }

 private:
  TRELLIS_INLINE void begin(std::uint64_t number) {
    number_ = number;
    block_ = random_block(key_, number);
    steps_ = lane_numbers() * block_.step;
  }

  RandomKey key_;
  std::uint64_t number_ = ~std::uint64_t{0};
  RandomBlock block_ = {};
  U steps_ = {}, first_ = {}, second_ = {};
};

struct NoRandomBits {
  explicit NoRandomBits(const KernelArguments&) {}
  void make(std::uint64_t, int) {}
  template <int rows>
  TRELLIS_INLINE U row(int) const {
    return U{};
  }
};
template <bool random>
using RandomBitsFor = std::conditional_t<random, RandomBits, NoRandomBits>;

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
