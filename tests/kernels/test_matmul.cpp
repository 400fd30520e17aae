// matmul against its truth and against the product in double, within the bound that the header derives.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/layers/matmul.h"
#include "kernels/types/convert.h"
#include "kernels/types/random.h"

namespace trellis::kernels {
namespace {

// A stored matrix of either type, whose rows have some elements between them.
struct Stored {
  DType type;
  std::size_t rows, columns, stride;
  std::vector<std::byte> bytes;

  Stored(DType t, std::size_t r, std::size_t c, std::size_t gap, std::uint64_t seed)
      : type(t), rows(r), columns(c), stride(c + gap), bytes((r * stride + 1) * size_of(t)) {
    const RandomKey key = random_key({.seed = seed});
    for (std::size_t i = 0; i < r * stride; ++i) set(i, static_cast<double>(random32(key, i)) * 0x1p-31 - 1);
  }
  std::vector<double> values() const {
    std::vector<double> all(rows * stride);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = get(0, i);
    return all;
  }
  void set(std::size_t i, double v) { store(type, bytes.data() + i * size_of(type), v); }
  double get(std::size_t i, std::size_t j) const { return load(type, bytes.data() + (i * stride + j) * size_of(type)); }
};

struct Case {
  MatmulShape shape;
  DType from, to;
  bool ta, tb;
  MatmulOptions options = {};
  std::size_t gap = 3;
};

struct Products {
  Stored a, b, before, fast, truth;

  explicit Products(const Case& c)
      : a(c.from, c.ta ? c.shape.k : c.shape.m, c.ta ? c.shape.m : c.shape.k, c.gap, 1),
        b(c.from, c.tb ? c.shape.n : c.shape.k, c.tb ? c.shape.k : c.shape.n, c.gap + 2, 2),
        before(c.to, c.shape.m, c.shape.n, c.gap + 1, 3),
        fast(before),
        truth(before) {}
  void multiply(const Case& c) {
    const MatrixView fa{a.bytes.data(), a.stride, c.ta}, fb{b.bytes.data(), b.stride, c.tb};
    matmul(c.shape, c.from, fa, fb, c.to, fast.bytes.data(), fast.stride, c.options);
    matmul_truth(c.shape, c.from, fa, fb, c.to, truth.bytes.data(), truth.stride, c.options);
  }
};

double rounded(DType type, double v) {
  std::byte at[8];
  store(type, at, v);
  return load(type, at);
}

void expect_close(const Case& c) {
  Products r(c);
  r.multiply(c);
  const std::vector<double> a = r.a.values(), b = r.b.values();
  const double alpha = c.options.alpha, beta = c.options.beta;
  for (std::size_t i = 0; i < c.shape.m; ++i)
    for (std::size_t j = 0; j < c.shape.n; ++j) {
      double sum = 0, magnitude = 0, sizes = 0;
      for (std::size_t x = 0; x < c.shape.k; ++x) {
        const double u = a[c.ta ? x * r.a.stride + i : i * r.a.stride + x];
        const double v = b[c.tb ? j * r.b.stride + x : x * r.b.stride + j];
        sum += u * v, magnitude += std::fabs(u * v), sizes += std::fabs(u) + std::fabs(v);
      }
      const double old = beta == 0 ? 0 : beta * r.before.get(i, j);
      const double exact = alpha * sum + old;
      // The bound is for the difference of the two results. Each of them lies within half of it from the exact product.
      const double half =
          matmul_bound(c.shape.k, std::fabs(alpha) * magnitude + std::fabs(old), std::fabs(alpha) * sizes, alpha) / 2;
      for (const Stored* s : {&r.fast, &r.truth}) {
        ASSERT_GE(s->get(i, j), rounded(c.to, exact - half)) << i << "," << j << " k=" << c.shape.k;
        ASSERT_LE(s->get(i, j), rounded(c.to, exact + half)) << i << "," << j << " k=" << c.shape.k;
      }
    }
  for (std::size_t i = 0; i < c.shape.m; ++i)
    for (std::size_t j = c.shape.n; j < r.fast.stride; ++j) ASSERT_EQ(r.fast.get(i, j), r.before.get(i, j));
}

constexpr std::pair<DType, DType> types[] = {
    {DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}};

TEST(Matmul, AllTransposesWithinTheBound) {
  for (const auto& [from, to] : types)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const MatmulShape& shape :
             {MatmulShape{1, 1, 1}, {1, 7, 300}, {33, 1, 65}, {17, 31, 2}, {64, 48, 96}, {5, 3, 1}, {127, 129, 63}})
          for (const MatmulOptions& o : {MatmulOptions{}, {.alpha = -0.3F, .beta = 0.7F}, {.beta = 1}})
            expect_close({shape, from, to, ta, tb, o});
}

TEST(Matmul, LongSumsAndSeveralTilesWithinTheBound) {
  for (const auto& [from, to] : types) {
    expect_close({{3, 5, 20000}, from, to, false, true});
    expect_close({{300, 600, 70}, from, to, true, false, {.alpha = 2, .beta = 1}});
    expect_close({{257, 513, 9}, from, to, false, false, {}, 0});
  }
}

TEST(Matmul, TheSameBitsForAnyNumberOfThreads) {
  for (const auto& [from, to] : types) {
    Case c{{700, 1100, 40}, from, to, false, true};
    Products one(c), three(c);
    const auto run = [&](Products& r, int threads) {
      matmul(c.shape, from, {r.a.bytes.data(), r.a.stride}, {r.b.bytes.data(), r.b.stride, true}, to,
             r.fast.bytes.data(), r.fast.stride, {.threads = threads});
    };
    run(one, 1), run(three, 3);
    EXPECT_EQ(one.fast.bytes, three.fast.bytes);
  }
}

TEST(Matmul, WithoutAProductOnlyBetaCounts) {
  for (const auto& [from, to] : types) {
    Stored c(to, 2, 3, 0, 9);
    const double old = c.get(1, 2);
    matmul({2, 3, 0}, from, {nullptr, 0}, {nullptr, 3}, to, c.bytes.data(), 3, {.beta = 2});
    EXPECT_EQ(c.get(1, 2), 2 * old);
    matmul({2, 3, 5}, from, {nullptr, 5}, {nullptr, 3}, to, c.bytes.data(), 3, {.alpha = 0, .beta = 0.5F});
    EXPECT_EQ(c.get(1, 2), old);
    c.set(5, std::numeric_limits<double>::quiet_NaN());
    matmul({2, 3, 0}, from, {nullptr, 0}, {nullptr, 3}, to, c.bytes.data(), 3);
    EXPECT_EQ(c.get(1, 2), 0);
    EXPECT_NO_THROW(matmul({0, 3, 5}, from, {nullptr, 5}, {nullptr, 3}, to, nullptr, 3));
    EXPECT_NO_THROW(matmul({3, 0, 5}, from, {nullptr, 5}, {nullptr, 0}, to, nullptr, 0));
  }
}

TEST(Matmul, NaNsAndInfinitiesComeThrough) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& [from, to] : types) {
    const Case c{{20, 40, 50}, from, to, false, false};
    Products r(c);
    r.a.set(1 * r.a.stride + 7, std::numeric_limits<double>::quiet_NaN());
    r.a.set(2 * r.a.stride + 7, inf);
    for (std::size_t j = 0; j < 40; ++j) r.b.set(7 * r.b.stride + j, j % 3 == 0 ? 0 : j % 3 == 1 ? 1 : -1);
    r.fast.set(3 * r.fast.stride, std::numeric_limits<double>::quiet_NaN());  // not read with beta 0
    r.multiply(c);
    for (std::size_t j = 0; j < 40; ++j) {
      EXPECT_TRUE(std::isnan(r.fast.get(1, j)));
      if (j % 3 == 0)
        EXPECT_TRUE(std::isnan(r.fast.get(2, j)));
      else
        EXPECT_EQ(r.fast.get(2, j), j % 3 == 1 ? inf : -inf);
    }
    EXPECT_TRUE(std::isfinite(r.fast.get(3, 0)));
    EXPECT_TRUE(std::isnan(r.truth.get(1, 0)));
  }
}

TEST(Matmul, AnyAlignment) {
  for (const auto& [from, to] : types) {
    const Case c{{9, 11, 13}, from, to, false, false};
    Products r(c);
    r.multiply(c);
    std::vector<std::byte> a(1), b(1), out(r.fast.bytes.size() + 1);
    a.insert(a.end(), r.a.bytes.begin(), r.a.bytes.end());
    b.insert(b.end(), r.b.bytes.begin(), r.b.bytes.end());
    std::copy(r.before.bytes.begin(), r.before.bytes.end(), out.begin() + 1);
    matmul(c.shape, from, {a.data() + 1, r.a.stride}, {b.data() + 1, r.b.stride}, to, out.data() + 1, r.fast.stride);
    EXPECT_TRUE(std::equal(r.fast.bytes.begin(), r.fast.bytes.end(), out.begin() + 1));
  }
}

TEST(Matmul, SaysWhatIsWrong) {
  std::vector<float> a(100), b(100), c(100);
  const auto with = [&](MatmulShape s, std::size_t lda, std::size_t ldb, std::size_t ldc, void* out,
                        MatmulOptions o = {}, DType from = DType::f32, DType to = DType::f32) {
    try {
      matmul(s, from, {a.data(), lda}, {b.data(), ldb}, to, out, ldc, o);
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(with({2, 3, 4}, 3, 3, 3, c.data()), "matmul: rows of a are 4 elements long and only 3 apart");
  EXPECT_EQ(with({2, 3, 4}, 4, 2, 3, c.data()), "matmul: rows of b are 3 elements long and only 2 apart");
  EXPECT_EQ(with({2, 3, 4}, 4, 3, 2, c.data()), "matmul: rows of c are 3 elements long and only 2 apart");
  EXPECT_NE(with({2, 3, 4}, 4, 3, 3, nullptr).find("c is null"), std::string::npos);
  EXPECT_NE(with({2, 3, 4}, 4, 3, 3, a.data() + 1).find("overlaps a"), std::string::npos);
  EXPECT_NE(with({2, 3, 4}, 4, 3, 3, c.data(), {.threads = -1}).find("-1 threads"), std::string::npos);
  EXPECT_NE(with({2, 3, 4}, 4, 3, 3, c.data(), {}, DType::f16).find("no product of f16"), std::string::npos);
  EXPECT_NE(with({2, 3, 4}, 4, 3, 3, c.data(), {}, DType::f32, DType::bf16).find("f32 into bf16"), std::string::npos);
  const std::size_t huge = std::size_t{1} << 62;
  EXPECT_NE(with({huge, 3, 4}, huge, 3, 3, c.data()), "");
  EXPECT_NE(with({4, 3, 4}, huge + 1, 3, 3, c.data()), "");
}

}  // namespace
}  // namespace trellis::kernels
