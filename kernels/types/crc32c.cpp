#include "kernels/types/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace trellis::kernels {
namespace {

constexpr std::array<std::uint32_t, 256> table = [] {
  std::array<std::uint32_t, 256> all{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? c >> 1 ^ 0x82F6'3B78 : c >> 1;
    all[i] = c;
  }
  return all;
}();

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] std::uint32_t by_instruction(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint64_t crc = ~before;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto last = static_cast<std::uint32_t>(crc);
  for (; i < bytes.size(); ++i) last = _mm_crc32_u8(last, std::to_integer<unsigned char>(bytes[i]));
  return ~last;
}
#endif

}  // namespace

std::uint32_t crc32c_plainly(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (const std::byte b : bytes) crc = table[(crc ^ std::to_integer<std::uint32_t>(b)) & 0xFF] ^ crc >> 8;
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return by_instruction(bytes, before);
#endif
  return crc32c_plainly(bytes, before);
}

}  // namespace trellis::kernels
