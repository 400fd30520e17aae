#include "kernels/types/mx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/types/check_arguments.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

constexpr std::uint8_t scale_nan = 255;
constexpr int scale_bias = 127;

// e2m1 has neither infinities nor NaN: every code is finite, the largest 6.
constexpr Format e2m1_format{2, 1, false};

struct Elements {
  Format format;
  std::uint32_t largest;
  int exponent;  // of the largest value
};

constexpr Elements elements_of(MxFormat f) {
  switch (f) {
    case MxFormat::mxfp8_e4m3:
      return {f8e4m3fn_format, f8e4m3fn_format.largest(), 8};
    case MxFormat::mxfp8_e5m2:
      return {f8e5m2_format, f8e5m2_format.largest(), 15};
    default:
      return {e2m1_format, 7, 2};
  }
}

double element_value(const Elements& e, std::uint32_t code) {
  if (e.largest != 7) return decode(e.format, code);
  constexpr double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8) != 0 ? -sizes[code & 7] : sizes[code & 7];
}

std::uint32_t element_code(const Elements& e, double value, Rounding rounding, std::uint32_t random) {
  const double most = element_value(e, e.largest);
  const std::uint32_t sign = std::signbit(value) ? e.format.sign() : 0;
  if (std::fabs(value) >= most) return sign | e.largest;
  return std::min(encode(e.format, std::fabs(value), rounding, random) & (e.format.sign() - 1), e.largest) | sign;
}

void check(MxFormat f, const KernelOperand& elements, const KernelOperand& scales, const KernelOperand& floats,
           bool decodes, std::size_t n) {
  const std::string what = fmt::format("{} of {}", decodes ? "mx_decode" : "mx_encode", name(f));
  if (n % mx_block != 0) text::refuse("{}: {} elements are not whole blocks of {}", what, n, mx_block);
  const KernelOperand blocks[] = {elements, scales};
  if (decodes)
    check_operands(what, {&floats, 1}, blocks, false);
  else
    check_operands(what, blocks, {&floats, 1}, false);
}

void put(MxFormat f, void* elements, std::size_t i, std::uint32_t code) {
  auto* bytes = static_cast<std::uint8_t*>(elements);
  if (f != MxFormat::mxfp4_e2m1)
    bytes[i] = static_cast<std::uint8_t>(code);
  else
    bytes[i / 2] = static_cast<std::uint8_t>(i % 2 == 0 ? code : bytes[i / 2] | code << 4);
}

std::uint32_t get(MxFormat f, const void* elements, std::size_t i) {
  const auto* bytes = static_cast<const std::uint8_t*>(elements);
  return f != MxFormat::mxfp4_e2m1 ? bytes[i] : (bytes[i / 2] >> (i % 2 * 4)) & 15U;
}

std::uint8_t scale_of(const float* block, const Elements& e, MxScaleRule kind) {
  float most = 0;
  for (std::size_t i = 0; i < mx_block; ++i) {
    if (!std::isfinite(block[i])) return scale_nan;
    most = std::max(most, std::fabs(block[i]));
  }
  if (most == 0) return 0;
  const int up = kind == MxScaleRule::trainium ? 1 : 0;
  return static_cast<std::uint8_t>(std::max(std::ilogb(most) - e.exponent + scale_bias + up, 0));
}

}  // namespace

void mx_encode(MxFormat f, const float* src, void* elements, std::uint8_t* scales, std::size_t n, const MxOptions& o) {
  check(f, {"elements", elements, mx_element_bytes(f, n)}, {"scales", scales, n / mx_block},
        array_of("mx_encode", "src", src, n), false, n);
  check_random("mx_encode", o.random, n);
  const Elements e = elements_of(f);
  const RandomKey key = random_key(o.random);
  for (std::size_t b = 0; b < n / mx_block; ++b) {
    scales[b] = scale_of(src + b * mx_block, e, o.scale);
    for (std::size_t i = b * mx_block; i < (b + 1) * mx_block; ++i) {
      const double value = scales[b] == scale_nan ? 0 : std::ldexp(double{src[i]}, scale_bias - scales[b]);
      put(f, elements, i, element_code(e, value, o.rounding, random32(key, o.random.first + i)));
    }
  }
}

void mx_decode(MxFormat f, const void* elements, const std::uint8_t* scales, float* dst, std::size_t n) {
  check(f, {"elements", elements, mx_element_bytes(f, n)}, {"scales", scales, n / mx_block},
        array_of("mx_decode", "dst", dst, n), true, n);
  const Elements e = elements_of(f);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint8_t scale = scales[i / mx_block];
    dst[i] = scale == scale_nan
                 ? std::numeric_limits<float>::quiet_NaN()
                 : static_cast<float>(std::ldexp(element_value(e, get(f, elements, i)), scale - scale_bias));
  }
}

}  // namespace trellis::kernels
