// The OCP microscaling formats: blocks of 32 elements that share a power of two. NeuronCore-v4 computes in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/types/dtype.h"
#include "kernels/types/random.h"

namespace trellis::kernels {

// Elements are f8e4m3fn, f8e5m2, or e2m1 (values 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; two a byte, the first
// in the lower half).
enum class MxFormat : std::uint8_t { mxfp8_e4m3, mxfp8_e5m2, mxfp4_e2m1 };

inline constexpr MxFormat mx_formats[] = {MxFormat::mxfp8_e4m3, MxFormat::mxfp8_e5m2, MxFormat::mxfp4_e2m1};
inline constexpr std::size_t mx_block = 32;

constexpr std::string_view name(MxFormat f) {
  constexpr std::string_view names[] = {"mxfp8_e4m3", "mxfp8_e5m2", "mxfp4_e2m1"};
  return names[static_cast<std::size_t>(f)];
}

constexpr std::size_t mx_element_bytes(MxFormat f, std::size_t n) { return f == MxFormat::mxfp4_e2m1 ? n / 2 : n; }

// How a block's scale is found. ocp: 2^(floor(log2 of the block's largest size) - exponent of the format's largest
// value), as the OCP document shows it; what then exceeds the largest element saturates to it. trainium: twice that, as
// its QuantizeMX instruction has it, which leaves room to round the largest.
enum class MxScaleRule : std::uint8_t { ocp, trainium };

struct MxOptions {
  MxScaleRule scale = MxScaleRule::ocp;
  Rounding rounding = Rounding::nearest;
  Random random = {};  // of stochastic rounding
};

// A scale is a byte b for 2^(b - 127); 255 is NaN and makes the whole block NaN. A block of zeros has scale 2^-127; one
// with a NaN or an infinity has scale NaN. n must be a multiple of 32.
void mx_encode(MxFormat, const float* src, void* elements, std::uint8_t* scales, std::size_t n, const MxOptions& = {});

// Exact, but where the product is beyond f32: then infinite.
void mx_decode(MxFormat, const void* elements, const std::uint8_t* scales, float* dst, std::size_t n);

}  // namespace trellis::kernels
