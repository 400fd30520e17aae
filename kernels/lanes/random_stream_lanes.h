// Random bits for 32 elements at a time, in order, for kernels that work through many elements.
#pragma once

#include "kernels/lanes/random_bits_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// How 32 elements are spread over vectors. rows: one vector has the first elements, one the next, and so on. pairs: one
// vector has every second of the first elements, one the elements between them, and so on (bf16_pair_lanes.h).
enum class LaneOrder { rows, pairs };
constexpr int vectors_of_32 = 32 / lanes;

// Each next() makes 16 random bits for each of count * 32 elements, in order. They begin with the first group of 64
// elements that starts at or after `first`.
template <LaneOrder order, int count = 1>
class RandomStream {
 public:
  RandomStream(const RandomKey& key, std::uint64_t first) : key_(key) {
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
      if constexpr (order == LaneOrder::pairs) words_[v] = in_order(words_[v]);
#endif
    }
  }
  // The random bits for vector number v of the elements, in the low halves of its lanes.
  TRELLIS_INLINE U of(int v) const {
    const U some = words_[v / vectors_of_32 * vectors + v % vectors];
    return v % vectors_of_32 < vectors ? some & 0xFFFF : some >> 16;
  }

 private:
  static constexpr int vectors = 16 / lanes;                        // that hold the words of 32 elements
  static constexpr int turns = static_cast<int>(block_words) / 16;  // how many times a block serves 32 elements

  TRELLIS_INLINE void begin() {
    const RandomBlock block = random_block(key_, number_);
    left_ = turns;
    inner_ = u_all(block.inner);
    stride_ = u_all(16 * block.step);
    for (int v = 0; v < vectors; ++v) {
      U words = lane_numbers() + static_cast<std::uint32_t>(v * lanes);
      if (order == LaneOrder::pairs && lanes < 16)
        words = 2 * lane_numbers() + static_cast<std::uint32_t>(v / 2 * 2 * lanes + v % 2);
      at_[v] = block.start + words * block.step;
    }
  }
#if defined(__AVX512BW__)
  // Puts the 16-bit halves of sixteen words into the elements' order: first all low halves, then all high ones.
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
  int left_;              // turns left in it
  U at_[vectors], words_[count * vectors], stride_, inner_;
};

struct NoRandomStream {
  NoRandomStream() = default;
  NoRandomStream(const RandomKey&, std::uint64_t) {}
  TRELLIS_INLINE void next() {}
  TRELLIS_INLINE U of(int) const { return U{}; }
};
template <bool random, LaneOrder order, int count = 1>
using RandomStreamFor = std::conditional_t<random, RandomStream<order, count>, NoRandomStream>;

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
