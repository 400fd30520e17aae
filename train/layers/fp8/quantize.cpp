#include "train/layers/fp8/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/dispatch/parallel.h"
#include "kernels/reduce/cast.h"
#include "kernels/types/mx.h"
#include "train/layers/element_access.h"

namespace trellis::train {
namespace {

using kernels::mx_block;

kernels::DType type_of(Fp8Format f) { return f == Fp8Format::e4m3 ? DType::f8e4m3fn : DType::f8e5m2; }
kernels::MxFormat mx_of(Fp8Format f) {
  return f == Fp8Format::e4m3 ? kernels::MxFormat::mxfp8_e4m3 : kernels::MxFormat::mxfp8_e5m2;
}
float largest_of(Fp8Format f) { return f == Fp8Format::e4m3 ? 448.0F : 57344.0F; }

float largest_in(DType type, void* values, std::size_t n) {
  float largest = 0;
  typed(type, values, [&](const auto* v) {
    for (std::size_t i = 0; i < n; ++i) {
      const float size = std::fabs(get(v[i]));
      if (!(size <= largest)) largest = size;  // a NaN stays
      if (std::isnan(largest)) return;
    }
  });
  return largest;
}

// Rounds a run of elements in place; they stay f32.
void round_run(float* run, std::size_t n, Fp8Format format, float scale) {
  std::vector<std::uint8_t> codes(n);
  for (std::size_t i = 0; i < n; ++i) run[i] *= scale;
  kernels::cast(DType::f32, run, type_of(format), codes.data(), n);
  kernels::cast(type_of(format), codes.data(), DType::f32, run, n);
  for (std::size_t i = 0; i < n; ++i) run[i] /= scale;
}

void round_blocks(float* run, std::size_t n, Fp8Format format) {  // n: a multiple of a block
  std::vector<std::uint8_t> codes(n), scales(n / mx_block);
  kernels::mx_encode(mx_of(format), run, codes.data(), scales.data(), n);
  kernels::mx_decode(mx_of(format), codes.data(), scales.data(), run, n);
}

// Calls round() for each line of elements. A line's elements are `step` apart in memory.
template <class Round>
void each_line(const Fp8QuantizeOptions& f, DType type, void* from, void* to, int threads, const Round& round) {
  const std::size_t lines = f.along_rows ? f.columns : f.rows, length = f.along_rows ? f.rows : f.columns;
  const std::size_t step = f.along_rows ? f.columns : 1, apart = f.along_rows ? 1 : f.columns;
  kernels::parallel(threads, lines, [&](std::size_t first, std::size_t end) {
    std::vector<float> line((length + mx_block - 1) / mx_block * mx_block);
    for (std::size_t i = first; i < end; ++i) {
      std::ranges::fill(line, 0);
      typed(type, from, [&](const auto* v) {
        for (std::size_t k = 0; k < length; ++k) line[k] = get(v[i * apart + k * step]);
      });
      round(line.data(), length, line.size());
      auto* const out = static_cast<std::uint16_t*>(to);
      for (std::size_t k = 0; k < length; ++k) put(line[k], out[i * apart + k * step]);
    }
  });
}

float scale_for(float largest, Fp8Format format) {
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  if (largest == 0) return 1;
  // Clamped so that the scale and its reciprocal are finite.
  return std::ldexp(1.0F, std::clamp(static_cast<int>(std::floor(std::log2(largest_of(format) / largest))), -100, 100));
}

}  // namespace

std::string_view type_name(Fp8Format f, Fp8Scaling scaling) {
  return scaling == Fp8Scaling::mx ? kernels::name(mx_of(f)) : kernels::name(type_of(f));
}

TensorId quantized(Writer& w, std::string_view name, TensorId t, const Fp8QuantizeOptions& f) {
  const Writer::Scope scope(w, name);
  const DType type = w.tensor(t).type;
  const TensorId to = w.tensor("rounded", DType::bf16, f.rows, f.columns);
  schedule::OperationShape shape = shape_over("cast", type, f.rows, f.columns);
  shape.result = type_name(f.format, f.scaling), shape.fused = true;
  if (f.scaling == Fp8Scaling::mx) {
    w.compute("round", {t}, {to}, 0, std::move(shape), [=](const Memory& at, const StepInputs&) {
      each_line(f, type, at.at(t), at.at(to), at.threads(),
                [&](float* line, std::size_t, std::size_t padded) { round_blocks(line, padded, f.format); });
    });
    return to;
  }
  const std::size_t n = f.rows * f.columns;
  const TensorId largest = w.tensor("largest", DType::f32, 1, 1);
  w.compute("find_largest", {t}, {largest}, static_cast<double>(n), fused_over("reduce", w.tensor(to)),
            [=](const Memory& at, const StepInputs&) { *at.as<float>(largest) = largest_in(type, at.at(t), n); });
  if (f.split && w.shape().tensor > 1) w.all_reduce("largest_of_all", Axis::tensor, largest, kernels::Reduction::max);
  w.compute("round", {t, largest}, {to}, 0, std::move(shape), [=](const Memory& at, const StepInputs&) {
    const float scale = scale_for(*at.as<float>(largest), f.format);
    Fp8QuantizeOptions by_rows = f;
    by_rows.along_rows = false;
    each_line(by_rows, type, at.at(t), at.at(to), at.threads(),
              [&](float* line, std::size_t length, std::size_t) { round_run(line, length, f.format, scale); });
  });
  return to;
}

}  // namespace trellis::train
