#include "kernels/check/matmul_accuracy.h"

#include <cmath>
#include <vector>

#include "kernels/types/convert.h"
#include "kernels/types/random.h"

namespace trellis::kernels {
namespace {

constexpr MatmulTypes all[] = {{DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}};

// Numbers in [-1, 1).
std::vector<std::byte> numbers(DType type, std::size_t n, std::uint64_t seed) {
  std::vector<std::byte> bytes(n * size_of(type));
  const RandomKey key = random_key({.seed = seed});
  for (std::size_t i = 0; i < n; ++i) store(type, &bytes[i * size_of(type)], random32(key, i) * 0x1p-31 - 1);
  return bytes;
}

double at(DType type, const std::vector<std::byte>& array, std::size_t i) {
  return load(type, &array[i * size_of(type)]);
}

double rounded(DType type, double value) {
  std::byte place[8];
  store(type, place, value);
  return load(type, place);
}

bool within_bound(const MatmulTypes& p, const MatmulShape& s, bool ta, bool tb) {
  const auto a = numbers(p.from, s.m * s.k, 1), b = numbers(p.from, s.k * s.n, 2);
  const MatrixView fa{a.data(), ta ? s.m : s.k, ta}, fb{b.data(), tb ? s.k : s.n, tb};
  std::vector<std::byte> fast(s.m * s.n * size_of(p.to)), truth(s.m * s.n * sizeof(float));
  matmul(s, p.from, fa, fb, p.to, fast.data(), s.n);
  matmul_truth(s, p.from, fa, fb, DType::f32, truth.data(), s.n);
  for (std::size_t i = 0; i < s.m * s.n; ++i) {
    double magnitude = 0, sizes = 0;
    for (std::size_t x = 0; x < s.k; ++x) {
      const double u = std::fabs(at(p.from, a, ta ? x * s.m + i / s.n : i / s.n * s.k + x));
      const double v = std::fabs(at(p.from, b, tb ? i % s.n * s.k + x : x * s.n + i % s.n));
      magnitude += u * v, sizes += u + v;
    }
    const double bound = matmul_bound(s.k, magnitude, sizes), wanted = at(DType::f32, truth, i);
    const double got = at(p.to, fast, i);
    if (!(got >= rounded(p.to, wanted - bound) && got <= rounded(p.to, wanted + bound))) return false;
  }
  return true;
}

}  // namespace

std::span<const MatmulTypes> products() { return all; }

bool agrees(const MatmulTypes& p) {
  for (const MatmulShape& shape : {MatmulShape{1, 1, 1}, {5, 7, 300}, {64, 48, 96}, {127, 129, 33}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        if (!within_bound(p, shape, ta, tb)) return false;
  return true;
}

}  // namespace trellis::kernels
