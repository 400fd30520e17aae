#include "kernels/layers/rotary.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/dispatch/parallel.h"
#include "kernels/types/check_arguments.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

// Rotary embedding has no twins, only plain loops: the work is a pass over memory, and the compiler vectorizes the
// loops well enough to keep up with it.
float arithmetic(float f) { return f != f ? std::numeric_limits<float>::quiet_NaN() : f; }
float wide(float f) { return f; }
float wide(std::uint16_t code) { return widen_bf16(code); }
void narrow(float f, float& to) { to = arithmetic(f); }
void narrow(float f, std::uint16_t& to) { to = bf16_nearest(arithmetic(f)); }

template <class Code>
Code get(const std::byte* array, std::size_t i) {
  Code code;
  std::memcpy(&code, array + i * sizeof code, sizeof code);
  return code;
}

template <class Code>
void put(std::byte* array, std::size_t i, float f) {
  Code code;
  narrow(f, code);
  std::memcpy(array + i * sizeof code, &code, sizeof code);
}

template <class Code, bool halves>
void turn_head(const std::byte* x, std::byte* y, const float* cosines, const float* sines, float sign,
               std::size_t pairs) {
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::size_t first = halves ? i : 2 * i, second = halves ? i + pairs : 2 * i + 1;
    const float a = wide(get<Code>(x, first)), b = wide(get<Code>(x, second));
    const float c = cosines[i], s = sign * sines[i];
    put<Code>(y, first, a * c - b * s);
    put<Code>(y, second, b * c + a * s);
  }
}

template <class Code, bool halves>
void turn_rows(const std::byte* x, std::byte* y, const RotaryShape& shape, const RotaryTable& table,
               const RotaryOptions& o, std::size_t from, std::size_t to) {
  const std::size_t pairs = shape.turned / 2, rest = (shape.head_size - shape.turned) * sizeof(Code);
  for (std::size_t row = from; row < to; ++row) {
    const std::size_t position = o.positions == nullptr ? row : static_cast<std::size_t>(o.positions[row]);
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::size_t at = (row * shape.stride + head * shape.head_size) * sizeof(Code);
      turn_head<Code, halves>(x + at, y + at, table.cosines + position * pairs, table.sines + position * pairs,
                              o.backward ? -1.0F : 1.0F, pairs);
      if (x != y && rest != 0)
        std::memcpy(y + at + shape.turned * sizeof(Code), x + at + shape.turned * sizeof(Code), rest);
    }
  }
}

void check_shape(const RotaryShape& s) {
  if (s.turned % 2 != 0 || s.turned > s.head_size)
    text::refuse("rotary: {} elements cannot turn in a head of {}; expected an even number, at most that", s.turned,
                 s.head_size);
  if (s.head_size != 0 && s.heads > std::numeric_limits<std::size_t>::max() / s.head_size)
    text::refuse("rotary: {} heads of {} are more than memory can hold", s.heads, s.head_size);
  if (s.stride < s.heads * s.head_size)
    text::refuse("rotary: rows of {} heads of {} elements are only {} apart", s.heads, s.head_size, s.stride);
  if (s.rows != 0 && s.stride > std::numeric_limits<std::size_t>::max() / s.rows)
    text::refuse("rotary: {} rows, {} elements apart, are more than memory can hold", s.rows, s.stride);
}

std::size_t angles_of(std::string_view kernel, std::size_t positions, std::size_t pairs) {
  if (pairs != 0 && positions > std::numeric_limits<std::size_t>::max() / pairs)
    text::refuse("{}: {} positions of {} pairs are more than memory can hold", kernel, positions, pairs);
  return positions * pairs;
}

void check_positions(const RotaryShape& s, const RotaryTable& t, const RotaryOptions& o) {
  if (o.positions == nullptr && s.rows > t.positions)
    text::refuse("rotary: {} rows and a table of {} positions", s.rows, t.positions);
  for (std::size_t row = 0; o.positions != nullptr && row < s.rows; ++row)
    if (o.positions[row] < 0 || static_cast<std::size_t>(o.positions[row]) >= t.positions)
      text::refuse("rotary: position {} of row {} is not in a table of {}", o.positions[row], row, t.positions);
}

}  // namespace

void rotary(DType type, const void* x, void* y, const RotaryShape& shape, const RotaryTable& table,
            const RotaryOptions& o) {
  if (type != DType::f32 && type != DType::bf16)
    text::refuse("rotary: {} is not supported; f32 and bf16 are", name(type));
  check_threads("rotary", o.threads);
  check_shape(shape);
  const std::size_t length = shape.heads * shape.head_size;
  if (shape.rows == 0 || length == 0) return;
  const std::size_t bytes = bytes_of("rotary", (shape.rows - 1) * shape.stride + length, size_of(type));
  const std::size_t angles = angles_of("rotary", table.positions, shape.turned / 2);
  const KernelOperand out{"y", y, bytes}, in{"x", x, bytes};
  const KernelOperand others[] = {
      array_of("rotary", "cosines", table.cosines, angles), array_of("rotary", "sines", table.sines, angles),
      array_of("rotary", "positions", o.positions, o.positions == nullptr ? 0 : shape.rows)};
  check_operands("rotary", {&out, 1}, {&in, 1}, true);
  check_operands("rotary", {&out, 1}, others, false);
  check_positions(shape, table, o);
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  const bool halves = o.pairing == Pairing::halves, f32 = type == DType::f32;
  parallel(o.threads, shape.rows, [&](std::size_t first, std::size_t last) {
    const auto turn = f32 ? (halves ? turn_rows<float, true> : turn_rows<float, false>)
                          : (halves ? turn_rows<std::uint16_t, true> : turn_rows<std::uint16_t, false>);
    turn(from, to, shape, table, o, first, last);
  });
}

void rotary_table(float* cosines, float* sines, std::size_t first, std::size_t count, std::size_t turned, double base) {
  if (turned % 2 != 0 || !(base > 0)) text::refuse("rotary_table: no angles for {} elements and base {}", turned, base);
  std::vector<double> frequencies(turned / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(turned));
  rotary_table(cosines, sines, first, count, frequencies);
}

void rotary_table(float* cosines, float* sines, std::size_t first, std::size_t count,
                  std::span<const double> frequencies) {
  const std::size_t pairs = frequencies.size();
  if (count != 0 && first > std::numeric_limits<std::size_t>::max() - count)
    text::refuse("rotary_table: {} positions from {} on pass the last position", count, first);
  const std::size_t angles = angles_of("rotary_table", count, pairs);
  const KernelOperand out[] = {array_of("rotary_table", "cosines", cosines, angles),
                               array_of("rotary_table", "sines", sines, angles)};
  check_operands("rotary_table", out, {}, false);
  for (std::size_t i = 0; i < pairs; ++i) {
    for (std::size_t p = 0; p < count; ++p) {
      const double angle = static_cast<double>(first + p) * frequencies[i];
      cosines[p * pairs + i] = static_cast<float>(std::cos(angle));
      sines[p * pairs + i] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace trellis::kernels
