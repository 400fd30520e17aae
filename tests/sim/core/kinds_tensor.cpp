#include <cmath>

#include "kernels/layers/matmul.h"
#include "tests/sim/core/bench.h"

namespace trellis::sim::core {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Checks c against a[K x M]^T b[K x N] in f64, within the error of sums in f32.
void expect_product(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& c,
                    std::int64_t k, std::int64_t m, std::int64_t n, const std::vector<double>& before = {}) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = before.empty() ? 0 : before[at(i * n + j)], magnitude = std::fabs(sum), sizes = 0;
      for (std::int64_t x = 0; x < k; ++x) {
        const double p = a[at(x * m + i)], q = b[at(x * n + j)];
        sum += p * q;
        magnitude += std::fabs(p * q);
        sizes += std::fabs(p) + std::fabs(q);
      }
      ASSERT_NEAR(c[at(i * n + j)], sum, kernels::matmul_bound(at(k) + 1, magnitude, sizes)) << i << " " << j;
    }
}

TEST(CoreMatmul, MultipliesWhatLiesInPartitions) {
  for (const DType type : {DType::bf16, DType::f32, DType::f16, DType::f8e4m3})
    for (const auto& [k, m, n] : {std::array{1, 1, 1}, {128, 128, 512}, {37, 5, 61}, {64, 128, 3}})
      for (const bool strided : {false, true}) {
        Bench b;
        const View p = b.add(plain(DType::f32, m, n, MemorySpace::psum));
        const View s = b.add(strided ? holes(type, k, 1, m) : plain(type, k, m));
        const View x = b.add(strided ? holes(type, k, 1, n) : plain(type, k, n));
        b.set("nc_matmul", Engine::tensor, {p}, {s, x});
        const auto ss = b.fill(s), xs = b.fill(x);
        b.run();
        expect_product(ss, xs, b.read(p), k, m, n);
      }
}

TEST(CoreMatmul, AddsToWhatPsumHolds) {
  Bench b;
  const View p = b.add(plain(DType::f32, 20, 30, MemorySpace::psum));
  const View s = b.add(plain(DType::bf16, 10, 20)), x = b.add(plain(DType::bf16, 10, 30));
  b.set("nc_matmul", Engine::tensor, {p}, {s, x}, {with(Key::accumulate, 1)});
  const auto before = b.fill(p), ss = b.fill(s), xs = b.fill(x);
  b.run();
  expect_product(ss, xs, b.read(p), 10, 20, 30, before);
}

TEST(CoreMatmul, DoubleRowsAreTwoHalvesOfTheSum) {
  Bench b;
  const View p = b.add(plain(DType::f32, 6, 10, MemorySpace::psum));
  const View s = b.add({DType::f8e4m3, 16, {{2, 6}, {6, 1}}}), x = b.add({DType::f8e5m2, 16, {{2, 10}, {10, 1}}});
  b.set("nc_matmul", Engine::tensor, {p}, {s, x}, {with(Key::mode, 1)});
  const auto ss = b.fill(s), xs = b.fill(x);
  b.run();
  expect_product(ss, xs, b.read(p), 32, 6, 10);  // 16 partitions of 2 rows each are 32 rows of 6
}

TEST(CoreTranspose, IsExact) {
  for (const bool tensor : {false, true}) {
    Bench b;
    const View x = b.add(holes(DType::bf16, 19, 2, 15));
    const View z = b.add(plain(DType::bf16, 30, 19, tensor ? MemorySpace::psum : MemorySpace::sbuf));
    b.set("nc_transpose", tensor ? Engine::tensor : Engine::vector, {z}, {x});
    const auto xs = b.fill(x);
    b.run();
    const auto zs = b.read(z);
    for (std::size_t r = 0; r < 19; ++r)
      for (std::size_t c = 0; c < 30; ++c) EXPECT_EQ(zs[c * 19 + r], xs[r * 30 + c]);
  }
  Bench b;
  const View s = b.add(plain(DType::f32, 40, 70)), i = b.add(plain(DType::f32, 40, 40));
  const View p = b.add(plain(DType::f32, 70, 40, MemorySpace::psum));
  b.set("nc_matmul", Engine::tensor, {p}, {s, i}, {with(Key::transpose, 1)});
  auto ss = b.fill(s);
  ss[3] = INFINITY;
  b.write(s, ss);
  b.run();
  const auto ps = b.read(p);
  for (std::size_t r = 0; r < 40; ++r)
    for (std::size_t c = 0; c < 70; ++c) EXPECT_EQ(ps[c * 40 + r], ss[r * 70 + c]);
}

// A transpose by identity adds to what PSUM holds if accumulate is set, and else replaces it.
TEST(CoreTranspose, ByIdentityAddsWhereItIsTold) {
  Bench b;
  const View x = b.add(plain(DType::bf16, 32, 16)), identity = b.add(plain(DType::bf16, 32, 32));
  const View p = b.add(plain(DType::f32, 16, 32, MemorySpace::psum));
  const auto xs = b.fill(x), before = b.fill(p);
  for (const bool adds : {true, false}) {
    b.set("nc_matmul", Engine::tensor, {p}, {x, identity}, {with(Key::transpose, 1), with(Key::accumulate, adds)});
    b.run();
    const auto ps = b.read(p);
    for (std::size_t c = 0; c < 16; ++c)
      for (std::size_t r = 0; r < 32; ++r) {
        const float sum = static_cast<float>(xs[r * 16 + c]) + static_cast<float>(before[c * 32 + r]);
        EXPECT_EQ(ps[c * 32 + r], adds ? sum : xs[r * 16 + c]);
      }
  }
}

// The operands have 64 partitions: the scales of the second quadrant lie in partitions 32 to 35.
TEST(CoreMx, QuantizesAndMultipliesByGroups) {
  constexpr std::int32_t rows = 64, m = 6, n = 10;
  const std::int32_t columns[2] = {m, n};
  Bench b("trn3");
  View from[2], parts[2], scales[2];
  for (std::size_t i = 0; i < 2; ++i) {
    from[i] = b.add(plain(DType::bf16, rows, 4 * columns[i]));
    parts[i] = b.add(plain(i == 0 ? DType::f8e4m3fn : DType::f8e5m2, rows, 4 * columns[i]));
    scales[i] = b.add(plain(DType::u8, 36, columns[i]));
  }
  const View p = b.add(plain(DType::f32, m, n, MemorySpace::psum));
  std::vector<double> numbers[2];
  for (std::size_t i = 0; i < 2; ++i) {
    b.set("quantize_mx", Engine::vector, {parts[i], scales[i]}, {from[i]});
    const auto xs = b.fill(from[i]);
    b.run();
    const auto codes = b.read(parts[i]), exponents = b.read(scales[i]);
    numbers[i].resize(codes.size());
    const std::size_t wide = at(4 * columns[i]);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < wide; ++c) {
        const std::size_t scale = (r / 32 * 32 + r % 32 / 8) * wide / 4 + c / 4;
        const double v = codes[r * wide + c] * std::ldexp(1.0, static_cast<int>(exponents[scale]) - 127);
        EXPECT_NEAR(v, xs[r * wide + c], std::fabs(xs[r * wide + c]) * 0.13 + 0.002);
        numbers[i][(r * 4 + c % 4) * wide / 4 + c / 4] = v;
      }
  }
  b.set("nc_matmul_mx", Engine::tensor, {p}, {parts[0], parts[1], scales[0], scales[1]});
  b.run();
  expect_product(numbers[0], numbers[1], b.read(p), 4 * rows, m, n);
}

}  // namespace
}  // namespace trellis::sim::core
