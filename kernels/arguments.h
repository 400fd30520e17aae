// Checks of what a caller passed: each throws std::invalid_argument with the values in it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/dtype.h"
#include "kernels/random.h"

namespace trellis::kernels {

struct Operand {
  std::string_view name;  // "dst"
  const void* data;
  std::size_t bytes;
  std::size_t alignment = 1;  // of what is read and written as the type that the caller's pointer names
};

// No operand of more than 0 bytes is null, misaligned, or so long that it would wrap around the end of memory; nothing
// written overlaps anything else, unless it is exactly a read operand and `in_place` allows it.
void check_operands(std::string_view kernel, std::span<const Operand> writes, std::span<const Operand> reads,
                    bool in_place);

// n elements of `size` bytes; throws when that does not fit.
std::size_t bytes_of(std::string_view kernel, std::size_t n, std::size_t size);

// n elements of a type of C++.
template <class T>
Operand array_of(std::string_view kernel, std::string_view name, const T* data, std::size_t n) {
  return {name, data, bytes_of(kernel, n, sizeof(T)), alignof(T)};
}

// From 0, which stands for one thread a core, to a thousand or so.
void check_threads(std::string_view kernel, int threads);

// n elements from random.first on do not pass the last index there is.
void check_random(std::string_view kernel, const Random&, std::size_t n);

}  // namespace trellis::kernels
