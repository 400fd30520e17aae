// The random bits of 32 elements after the other, for what works through many.
#pragma once

#include "kernels/lanes/bits_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// Which elements the vectors of 32 stand for: in rows a vector for the first elements, one for the next ones and so on;
// in pairs a vector for every second of the first elements, one for those between, and so on (pair_lanes.h).
enum class Order { rows, pairs };
constexpr int vectors_of_32 = 32 / lanes;

// The random bits of so many 32s of elements, 16 each, one after the other, from the first group of 64 that begins at
// or after the last element.
template <Order order, int count = 1>
class NextBits {
 public:
  NextBits(const RandomKey& key, std::uint64_t first) : key_(key) {
    const std::uint64_t turn = (first + 63) / 64 * 2;
    number_ = turn / turns;
    begin();
    left_ = turns - static_cast<int>(turn % turns);
    for (U& x : at_) x += stride_ * static_cast<std::uint32_t>(turn % turns);
  }

  TRELLIS_INLINE void next() {
    if (left_ == 0) [[unlikely]] {
      ++number_;
      begin();
    }
    left_ -= count;
#pragma GCC unroll 4
    for (int v = 0; v < count * vectors; ++v) {
      words_[v] = random_mixed(at_[v % vectors], inner_);
      at_[v % vectors] += stride_;
#if defined(__AVX512BW__)
      if constexpr (order == Order::pairs) words_[v] = in_order(words_[v]);
#endif
    }
  }
  // The random bits for vector number v of the elements, in the low halves of its lanes.
  TRELLIS_INLINE U of(int v) const {
    const U some = words_[v / vectors_of_32 * vectors + v % vectors];
    return v % vectors_of_32 < vectors ? some & 0xFFFF : some >> 16;
  }

 private:
  static constexpr int vectors = 16 / lanes;                        // of the words of 32 elements
  static constexpr int turns = static_cast<int>(block_words) / 16;  // that a block lasts

  TRELLIS_INLINE void begin() {
    const RandomBlock block = random_block(key_, number_);
    left_ = turns;
    inner_ = u_all(block.inner);
    stride_ = u_all(16 * block.step);
    for (int v = 0; v < vectors; ++v) {
      U words = lane_numbers() + static_cast<std::uint32_t>(v * lanes);
      if (order == Order::pairs && lanes < 16)
        words = 2 * lane_numbers() + static_cast<std::uint32_t>(v / 2 * 2 * lanes + v % 2);
      at_[v] = block.start + words * block.step;
    }
  }
#if defined(__AVX512BW__)
  // The halves of sixteen words as two vectors of pairs have them: a row in the low halves becomes the first half.
  TRELLIS_INLINE static U in_order(U words) {
    Q places;
    for (int i = 0; i < lanes; ++i) {
      places[i] = static_cast<std::uint16_t>(2 * i);
      places[i + lanes] = static_cast<std::uint16_t>(2 * i + 1);
    }
    return (U)_mm512_permutexvar_epi16((__m512i)places, (__m512i)words);
  }
#endif

  RandomKey key_;
  std::uint64_t number_;  // of the block
  int left_;              // turns of it
  U at_[vectors], words_[count * vectors], stride_, inner_;
};

struct NoNextBits {
  NoNextBits() = default;
  NoNextBits(const RandomKey&, std::uint64_t) {}
  TRELLIS_INLINE void next() {}
  TRELLIS_INLINE U of(int) const { return U{}; }
};
template <bool random, Order order, int count = 1>
using NextBitsFor = std::conditional_t<random, NextBits<order, count>, NoNextBits>;

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
