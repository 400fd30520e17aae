// This CPU's instruction sets, caches and cores, and the set whose twins are used: found once, at the first call of
// cpu().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trellis::kernels {

// The sets of instructions that twins are compiled for, slowest first; each includes the one before it. vec128 is what
// every CPU of the build's kind has (SSE2, NEON).
enum class Isa : std::uint8_t { vec128, avx2, avx512, avx512bf16 };
inline constexpr std::size_t isa_count = 4;

constexpr std::string_view name(Isa isa) {
  constexpr std::string_view names[] = {"vec128", "avx2", "avx512", "avx512bf16"};
  return names[static_cast<std::size_t>(isa)];
}

struct Cpu {
  std::string model;
  std::array<bool, isa_count> has = {};
  Isa best = Isa::vec128;           // or what TRELLIS_ISA asks for
  std::size_t l1_bytes = 32 << 10;  // data, of one core
  std::size_t l2_bytes = 1 << 20;
  std::size_t l3_bytes = 0;  // 0: none that is known
  int cores = 1;             // that this process may use; 0 threads stands for this number

  // A call that touches this many bytes stores past the caches: twice what the caches can hold.
  std::size_t out_of_cache() const { return 2 * (l3_bytes != 0 ? l3_bytes : l2_bytes * 4); }
};

// Throws invalid_argument where the environment's TRELLIS_ISA names no set of instructions that this CPU has.
const Cpu& cpu();

// The best of the sets that a CPU has, or the one named `wanted` unless that is empty. Throws as cpu() does.
Isa isa_for(const std::array<bool, isa_count>& has, std::string_view wanted);

}  // namespace trellis::kernels
