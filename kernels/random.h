// Random bits without state: f(seed, step, tensor, element), so that neither sharding nor threads nor vector width can
// change a result. Philox4x32 (Salmon and others, SC 2011) with 10 rounds makes a tensor's key, with 7 an element's
// bits.
#pragma once

#include <array>
#include <cstdint>

namespace trellis::kernels {

struct Random {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;    // of training, or of whatever repeats
  std::uint64_t tensor = 0;  // which of the tensors of a step
  std::uint64_t first = 0;   // the global index of the call's first element: a shard passes where it begins
};

using Block = std::array<std::uint32_t, 4>;

inline constexpr std::uint32_t philox_multipliers[2] = {0xD2511F53, 0xCD9E8D57};
inline constexpr std::uint32_t philox_weyl[2] = {0x9E3779B9, 0xBB67AE85};
template <int rounds>
constexpr Block philox(Block c, std::array<std::uint32_t, 2> key) {
  for (int r = 0; r < rounds; ++r) {
    const std::uint64_t p0 = std::uint64_t{philox_multipliers[0]} * c[0];
    const std::uint64_t p1 = std::uint64_t{philox_multipliers[1]} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key = {key[0] + philox_weyl[0], key[1] + philox_weyl[1]};
  }
  return c;
}

// What a tensor's elements have in common at one step: 128 bits, different for every other (step, tensor) of a seed.
struct RandomKey {
  std::uint64_t start;
  std::uint64_t inner;
};

constexpr RandomKey random_key(const Random& r) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const Block b = philox<10>({low(r.step), high(r.step), low(r.tensor), high(r.tensor)}, {low(r.seed), high(r.seed)});
  return {b[0] | std::uint64_t{b[1]} << 32, b[2] | std::uint64_t{b[3]} << 32};
}

// Word number `index` of a key: a Weyl sequence, mixed by two multiplications with half of the key between them. Three
// times as fast as Philox with the fewest rounds that pass; tests/kernels/random.cpp holds both to the same tests.
inline constexpr std::uint64_t weyl_step = 0x9E37'79B9'7F4A'7C15;
inline constexpr std::uint64_t mix_first = 0xBF58'476D'1CE4'E5B9, mix_second = 0x94D0'49BB'1331'11EB;

constexpr std::uint64_t random_word(const RandomKey& k, std::uint64_t index) {
  std::uint64_t x = k.start + index * weyl_step;
  x = (x ^ (x >> 30)) * mix_first;
  x = (x ^ (x >> 27) ^ k.inner) * mix_second;
  return x ^ (x >> 31);
}

// Sixteen words serve a group of elements, in rows of sixteen: two neighbours of a row share a word, the first half of
// the rows the first eight words. It is the layout in which vectors of any width compute them.
template <int rows>
constexpr std::uint32_t random_half(const RandomKey& k, std::uint64_t element) {
  const bool second = element / 16 % rows >= rows / 2;
  const std::uint64_t word = random_word(k, element / (16 * rows) * 16 + (second ? 8 : 0) + element % 16 / 2);
  return static_cast<std::uint32_t>(element % 2 == 0 ? word : word >> 32);
}

// 32 uniform bits: 32 elements share sixteen words.
constexpr std::uint32_t random32(const RandomKey& k, std::uint64_t element) { return random_half<2>(k, element); }

// 16 uniform bits: 64 elements share sixteen words.
constexpr std::uint32_t random16(const RandomKey& k, std::uint64_t element) {
  const std::uint32_t half = random_half<4>(k, element);
  return element / 16 % 2 == 0 ? half & 0xFFFF : half >> 16;
}

constexpr std::uint32_t random_for(const RandomKey& k, std::uint64_t element, int bits) {
  return bits == 16 ? random16(k, element) : random32(k, element);
}

}  // namespace trellis::kernels
