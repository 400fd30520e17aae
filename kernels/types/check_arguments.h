// Checks of what a caller passed: each throws std::invalid_argument with the values in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "kernels/types/dtype.h"
#include "kernels/types/random.h"

namespace trellis::kernels {

struct KernelOperand {
  std::string_view name;  // "dst"
  const void* data;
  std::size_t bytes;
  std::size_t alignment = 1;  // that of its type, where it is accessed through a typed pointer
};

// Requires that no operand of more than 0 bytes is null, misaligned, or so long that it would wrap around the end of
// memory; nothing written may overlap anything else, unless it is exactly a read operand and `in_place` allows it.
void check_operands(std::string_view kernel, std::span<const KernelOperand> writes,
                    std::span<const KernelOperand> reads, bool in_place);

// A quick check of one written and one read operand of the same size and of any alignment, where in_place is allowed.
// True: they are right. False: check_operands must look, and says what is wrong, if anything.
inline bool plainly_right(const void* written, const void* read, std::size_t bytes) {
  const auto w = reinterpret_cast<std::uintptr_t>(written), r = reinterpret_cast<std::uintptr_t>(read);
  const std::uintptr_t apart = w > r ? w - r : r - w;
  return w != 0 && r != 0 && (apart == 0 || apart >= bytes) && w + bytes >= w && r + bytes >= r;
}

// bytes_of gives the bytes of n elements of `size` bytes, or calls refuse_bytes, which throws, if they are too many.
[[noreturn]] void refuse_bytes(std::string_view kernel, std::size_t n, std::size_t size);
inline std::size_t bytes_of(std::string_view kernel, std::size_t n, std::size_t size) {
  std::ptrdiff_t bytes = 0;
  if (__builtin_mul_overflow(n, size, &bytes)) refuse_bytes(kernel, n, size);
  return static_cast<std::size_t>(bytes);
}

// Describes an array of n elements of a C++ type as an operand.
template <class T>
KernelOperand array_of(std::string_view kernel, std::string_view name, const T* data, std::size_t n) {
  return {name, data, bytes_of(kernel, n, sizeof(T)), alignof(T)};
}

// A call may ask for up to this many threads; 0 stands for one thread a core.
inline constexpr int most_threads = 1024;
[[noreturn]] void refuse_threads(std::string_view kernel, int threads);
inline void check_threads(std::string_view kernel, int threads) {
  if (threads < 0 || threads > most_threads) refuse_threads(kernel, threads);
}

// check_random throws, by refuse_random, if the indices of n elements from random.first on pass the largest 64-bit
// number.
[[noreturn]] void refuse_random(std::string_view kernel, const Random&, std::size_t n);
inline void check_random(std::string_view kernel, const Random& random, std::size_t n) {
  if (random.first > std::numeric_limits<std::uint64_t>::max() - n) refuse_random(kernel, random, n);
}

}  // namespace trellis::kernels
