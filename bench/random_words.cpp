// Writes random bits to the standard output without end, for batteries of statistical tests that read a stream of
// 32-bit words, such as PractRand's RNG_test stdin32:
//
//     bench_random_words elements | RNG_test stdin32
//
// `elements` writes 32 bits for each element of one tensor; `halves` the 16 bits that bf16 uses, two elements a word;
// `tensors` the first 512 words of each tensor in turn. Any other argument prints a few words of each, as text.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "kernels/types/random.h"

namespace {

using namespace trellis::kernels;
using Words = std::array<std::uint32_t, block_words>;

Words elements(std::uint64_t turn) {
  static constexpr RandomKey key = random_key({.seed = 1});
  const RandomBlock block = random_block(key, turn);
  Words words;
  for (std::uint32_t i = 0; i < block_words; ++i) words[i] = block_word(block, i);
  return words;
}

Words halves(std::uint64_t turn) {
  const Words words = elements(turn);
  Words pairs;
  for (std::uint32_t i = 0; i < block_words; ++i) {
    const std::uint32_t from = i / 16 * 16 + i % 8 * 2, up = i / 8 % 2 * 16;
    pairs[i] = (words[from] >> up & 0xFFFF) | (words[from + 1] >> up << 16);
  }
  return pairs;
}

Words tensors(std::uint64_t turn) {
  const RandomBlock block = random_block(random_key({.seed = 1, .tensor = turn}), 0);
  Words words;
  for (std::uint32_t i = 0; i < block_words; ++i) words[i] = block_word(block, i);
  return words;
}

struct Order {
  std::string_view name;
  Words (*words)(std::uint64_t turn);
};
constexpr Order orders[] = {{"elements", elements}, {"halves", halves}, {"tensors", tensors}};

}  // namespace

int main(int argc, char** argv) {
  for (const Order& order : orders)
    for (std::uint64_t turn = 0; argc == 2 && order.name == argv[1]; ++turn) {
      const Words words = order.words(turn);
      if (std::fwrite(words.data(), sizeof words, 1, stdout) != 1) return 0;
    }
  for (const Order& order : orders) {
    const Words words = order.words(0);
    std::printf("%s: %08x %08x %08x ...\n", order.name.data(), words[0], words[1], words[2]);
  }
  return 0;
}
