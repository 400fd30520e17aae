// Bytes in whole vectors, past the caches or through them.
#pragma once

#include <array>

#include "kernels/lanes/load_store_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

constexpr std::ptrdiff_t at_once = 4 * sizeof(U);

template <bool streaming>
void copied(char* to, const char* from, std::size_t bytes) {
  const auto n = static_cast<std::ptrdiff_t>(bytes);
  std::ptrdiff_t i = 0;
  for (; i + at_once <= n; i += at_once) {
    // Four names, not an array, which would go through the stack.
    const U a = load<U>(from + i, 0, AllLanes{}), b = load<U>(from + i, lanes, AllLanes{}),
            c = load<U>(from + i, 2 * lanes, AllLanes{}), d = load<U>(from + i, 3 * lanes, AllLanes{});
    put<streaming>(to + i, 0, a, AllLanes{});
    put<streaming>(to + i, lanes, b, AllLanes{});
    put<streaming>(to + i, 2 * lanes, c, AllLanes{});
    put<streaming>(to + i, 3 * lanes, d, AllLanes{});
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(n - i));
}

void copy_bytes(const KernelArguments& s) {
  auto* const to = static_cast<char*>(s.writes[0]);
  const auto* const from = static_cast<const char*>(s.reads[0]);
  if (!s.streaming) return copied<false>(to, from, s.n);
  const std::size_t head = to_alignment(to, 1) < s.n ? to_alignment(to, 1) : s.n;
  std::memcpy(to, from, head);
  copied<true>(to + head, from + head, s.n - head);
  fence();
}

constexpr std::array<Twin, 1> copies = {{{KernelName::of("copy", "u8"), copy_bytes}}};

const Registered registered(this_isa, copies);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
