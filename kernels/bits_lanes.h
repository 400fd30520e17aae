// The random bits of elements by vectors, as random.h has them one by one.
#pragma once

#include "kernels/lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

class Bits {
 public:
  explicit Bits(const RandomKey& key) : start_(key.start), inner_(key.inner) {}
  explicit Bits(const Stretch& s) : Bits(s.key) {}

  // For the lanes from `lane` on of the rows of a group.
  TRELLIS_INLINE void make(std::uint64_t group, int lane) {
    const std::uint64_t word = start_ + (group * 16 + static_cast<std::uint64_t>(lane / 2)) * weyl_step;
    first_ = (U)mixed(word + steps());
    second_ = (U)mixed((word + 8 * weyl_step) + steps());
  }
  template <int rows>
  TRELLIS_INLINE U row(int r) const {
    const U words = r < rows / 2 ? first_ : second_;
    if constexpr (rows == 2) return words;
    return r % 2 == 0 ? words & 0xFFFF : words >> 16;
  }

  TRELLIS_INLINE W mixed(W x) const {
    x = (x ^ (x >> 30)) * mix_first;
    x = (x ^ (x >> 27) ^ inner_) * mix_second;
    return x ^ (x >> 31);
  }
  TRELLIS_INLINE static W steps() {
    W w{};
    for (int i = 0; i < lanes / 2; ++i) w[i] = static_cast<std::uint64_t>(i) * weyl_step;
    return w;
  }

 private:
  std::uint64_t start_, inner_;
  U first_ = {}, second_ = {};
};

#if defined(__AVX512F__)
// The bits of whole groups of four rows, one group after the other from the first that begins at or after the stretch.
class NextBits {
 public:
  NextBits(const RandomKey& key, std::uint64_t first)
      : word_(Bits::steps() + (key.start + (first + 63) / 64 * 16 * weyl_step)), bits_(key) {}
  explicit NextBits(const Stretch& s) : NextBits(s.key, s.first) {}
  TRELLIS_INLINE void next() {
    two_[0] = (U)bits_.mixed(word_);
    two_[1] = (U)bits_.mixed(word_ + 8 * weyl_step);
    word_ += 16 * weyl_step;
  }
  // Of the first two rows, or of the others: the low halves are one row's, the high ones the next one's.
  TRELLIS_INLINE U two_rows(bool others) const { return two_[others]; }

 private:
  W word_;
  Bits bits_;
  U two_[2] = {};
};
#endif

struct NoBits {
  explicit NoBits(const Stretch&) {}
  void make(std::uint64_t, int) {}
  template <int rows>
  TRELLIS_INLINE U row(int) const {
    return U{};
  }
};

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
