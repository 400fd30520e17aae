// Random bits without state: f(seed, step, tensor, element), so that neither sharding nor threads nor vector width can
// change a result. Philox4x32 (Salmon and others, SC 2011) with 10 rounds makes a tensor's key; a mixer makes an
// element's bits of it.
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

// Word number `index` of a key: a Weyl sequence, mixed by two multiplications with half of the key between them.
inline constexpr std::uint64_t weyl_step = 0x9E37'79B9'7F4A'7C15;
inline constexpr std::uint64_t mix_first = 0xBF58'476D'1CE4'E5B9, mix_second = 0x94D0'49BB'1331'11EB;

constexpr std::uint64_t random_word(const RandomKey& k, std::uint64_t index) {
  std::uint64_t x = k.start + index * weyl_step;
  x = (x ^ (x >> 30)) * mix_first;
  x = (x ^ (x >> 27) ^ k.inner) * mix_second;
  return x ^ (x >> 31);
}

// The elements' bits come in blocks of 512 words of 32 bits. Two random words of the key give a block its three
// numbers; all that follows is 32-bit arithmetic, which every CPU's vectors have. tests/kernels/random.cpp tests this
// generator as it tests Philox.
struct RandomBlock {
  std::uint32_t start;
  std::uint32_t step;  // odd
  std::uint32_t inner;
};
inline constexpr std::uint32_t block_words = 512;

constexpr RandomBlock random_block(const RandomKey& k, std::uint64_t block) {
  const std::uint64_t first = random_word(k, 2 * block), second = random_word(k, 2 * block + 1);
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(first >> 32) | 1,
          static_cast<std::uint32_t>(second)};
}

// Shifts and multipliers are those that Wellons's hash-prospector found to leave least bias.
inline constexpr std::uint32_t half_mix_first = 0x21F0'AAAD, half_mix_second = 0xD35A'2D97;

constexpr std::uint32_t block_word(const RandomBlock& b, std::uint32_t index) {
  std::uint32_t x = b.start + index * b.step;
  x = (x ^ (x >> 16)) * half_mix_first;
  x = (x ^ (x >> 15) ^ b.inner) * half_mix_second;
  return x ^ (x >> 15);
}

constexpr std::uint32_t half_word(const RandomKey& k, std::uint64_t index) {
  return block_word(random_block(k, index / block_words), static_cast<std::uint32_t>(index % block_words));
}

// 32 uniform bits.
constexpr std::uint32_t random32(const RandomKey& k, std::uint64_t element) { return half_word(k, element); }

// 16 uniform bits. Thirty-two elements are two rows of sixteen and share sixteen words: the first row has the low
// halves. It is the layout in which vectors of any width compute them.
constexpr std::uint32_t random16(const RandomKey& k, std::uint64_t element) {
  const std::uint32_t word = half_word(k, element / 32 * 16 + element % 16);
  return element / 16 % 2 == 0 ? word & 0xFFFF : word >> 16;
}

constexpr std::uint32_t random_for(const RandomKey& k, std::uint64_t element, int bits) {
  return bits == 16 ? random16(k, element) : random32(k, element);
}

}  // namespace trellis::kernels
