// Softmax and cross-entropy against double, within the rounding of their sums; gradients against differences.
#include <limits>
#include <stdexcept>

#include "kernels/layers/cross_entropy.h"
#include "kernels/layers/softmax.h"
#include "tests/kernels/layers.h"

namespace trellis::kernels {
namespace {

using Values = std::vector<double>;

double along(std::size_t columns) { return static_cast<double>(columns) / 32 + 7; }

Values softmax_of(const Values& x, double scale) {
  double most = -INFINITY, sum = 0;
  for (double v : x) most = std::max(most, v * scale);
  Values y;
  for (double v : x) y.push_back(std::exp(v * scale - most)), sum += y.back();
  for (double& v : y) v /= sum;
  return y;
}

double log_sum_of(const Values& x) {
  double most = -INFINITY, sum = 0;
  for (double v : x) most = std::max(most, v);
  for (double v : x) sum += std::exp(v - most);
  return most + std::log(sum);
}

Values head(const Array& a, std::size_t row, std::size_t columns, std::size_t seen) {
  Values v(seen);
  for (std::size_t i = 0; i < seen; ++i) v[i] = a[row * columns + i];
  return v;
}

void check_softmax(DType type, std::size_t rows, std::size_t columns, std::size_t queries) {
  const float scale = 0.4F;
  const double reach = 12 * scale;  // the largest |t|
  const Array x(type, rows * columns, 1, 12), dy(type, rows * columns, 2);
  Array y(type, rows * columns), dx(type, rows * columns);
  const SoftmaxOptions options{.scale = scale, .queries = queries};
  softmax(type, x.data(), y.data(), rows, columns, options);
  softmax_gradient(type, dy.data(), y.data(), dx.data(), rows, columns, options);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t seen = queries == 0 ? columns : columns - queries + row % queries + 1;
    const Values v = head(x, row, columns, seen), g = head(dy, row, columns, seen);
    const Values wanted = softmax_of(v, scale);
    const Values slope = slopes(v, [&](const Values& at) { return product(softmax_of(at, scale), g); });
    // Each exponential has its own error of 2.2 u and that of its argument. Both count twice: in the term and in the
    // sum.
    const double relative = (2 * (2.2 + 4 * reach) + along(columns) + 3) * u;
    // The gradient starts from y as it was stored.
    const double y_error = type == DType::f32 ? relative : 0x1p-8;
    double size = 0;
    for (std::size_t i = 0; i < seen; ++i) size += wanted[i] * std::fabs(g[i]);
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t at = row * columns + i;
      if (i >= seen) {
        ASSERT_EQ(y[at], 0);
        ASSERT_EQ(dx[at], 0);
        continue;
      }
      ASSERT_TRUE(close(y, at, wanted[i], wanted[i] * relative));
      const double terms = scale * wanted[i] * (std::fabs(g[i]) + size);
      ASSERT_TRUE(close(dx, at, slope[i], terms * ((along(columns) + 4) * u + 2 * y_error) + difference_error));
    }
  }
}

TEST(Softmax, AndItsGradient) {
  for (const DType type : layer_types) {
    for (const std::size_t columns : {1, 2, 31, 32, 33, 100, 257}) check_softmax(type, 5, columns, 0);
    check_softmax(type, 14, 7, 7);
    check_softmax(type, 9, 40, 3);
  }
}

TEST(Softmax, ExtremeRows) {
  const float inf = INFINITY;
  std::vector<float> x{1e30F, -1e30F, 1e30F, -inf, 5, -inf, -inf, -inf, -inf, inf, 1, 2, NAN, 1, 2}, y(15);
  softmax(DType::f32, x.data(), y.data(), 5, 3);
  const float wanted[] = {0.5F, 0, 0.5F, 0, 1, 0};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(y[i], wanted[i]) << i;
  for (const std::size_t i : {6, 7, 8, 9, 12, 13, 14}) EXPECT_TRUE(std::isnan(y[i])) << i;
  softmax(DType::f32, x.data(), x.data(), 5, 3, {.threads = 4});  // in place
  for (std::size_t i = 0; i < 15; ++i) EXPECT_TRUE(x[i] == y[i] || std::isnan(y[i]));
  EXPECT_NO_THROW(softmax(DType::f32, nullptr, nullptr, 0, 3));
}

TEST(Softmax, SaysWhatIsWrong) {
  std::vector<float> x(12), y(12);
  EXPECT_THROW(softmax(DType::f32, x.data(), y.data(), 4, 3, {.queries = 4}), std::invalid_argument);
  EXPECT_THROW(softmax(DType::f32, x.data(), y.data(), 4, 3, {.queries = 3}), std::invalid_argument);
  EXPECT_THROW(softmax(DType::f32, x.data(), x.data() + 1, 3, 3), std::invalid_argument);
  EXPECT_THROW(softmax(DType::f64, x.data(), y.data(), 1, 3), std::invalid_argument);
  EXPECT_THROW(softmax_gradient(DType::f32, x.data(), nullptr, y.data(), 4, 3), std::invalid_argument);
}

void check_cross_entropy(DType type, std::size_t rows, std::size_t columns) {
  const double reach = 10;
  const Array x(type, rows * columns, 5, reach);
  Array losses(DType::f32, rows), log_sums(DType::f32, rows), dx(type, rows * columns);
  std::vector<std::int32_t> labels(rows);
  for (std::size_t r = 0; r < rows; ++r) labels[r] = r % 4 == 3 ? -100 : static_cast<std::int32_t>(r * 7 % columns);
  const CrossEntropyOptions options{.factor = 0.25F, .threads = 2};
  const auto floats = [](Array& a) { return static_cast<float*>(a.data()); };
  const CrossEntropyResult all =
      cross_entropy(type, x.data(), labels.data(), floats(losses), floats(log_sums), rows, columns, options);
  cross_entropy_gradient(type, x.data(), labels.data(), floats(log_sums), dx.data(), rows, columns, options);
  const double error = (2.2 + 2 * reach + along(columns)) * u;  // of the sum, relative, and of its logarithm
  double total = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const Values v = head(x, r, columns, columns);
    const double log_sum = log_sum_of(v);
    EXPECT_TRUE(close(log_sums, r, log_sum, error));
    const bool ignored = labels[r] == -100;
    const auto label = static_cast<std::size_t>(ignored ? 0 : labels[r]);
    EXPECT_TRUE(close(losses, r, ignored ? 0 : log_sum - v[label], ignored ? 0 : error));
    total += losses[r];
    const Values slope = slopes(v, [&](const Values& at) { return ignored ? 0 : log_sum_of(at) - at[label]; });
    const Values share = softmax_of(v, 1);
    for (std::size_t i = 0; i < columns; ++i) {
      const double relative = 2.2 + 3 + std::fabs(v[i] - log_sum) + std::fabs(log_sum);
      const double slack = ignored ? 0 : 0.25 * (share[i] * (relative * u + error) + 2 * u + difference_error);
      ASSERT_TRUE(close(dx, r * columns + i, 0.25 * slope[i], slack));
    }
  }
  EXPECT_EQ(all.counted, rows - rows / 4);
  EXPECT_NEAR(all.loss, total, static_cast<double>(rows) * 20 * u);
}

TEST(CrossEntropyResult, AndItsGradient) {
  for (const DType type : layer_types)
    for (const std::size_t columns : {1, 2, 31, 33, 100, 300}) check_cross_entropy(type, 9, columns);
}

TEST(CrossEntropyResult, OfShardsIsThatOfTheWhole) {
  constexpr std::size_t rows = 6, classes = 20, half = 10;
  const Array x(DType::f32, rows * classes, 1, 5);
  const std::vector<std::int32_t> labels{0, 9, 10, 19, -100, 4};
  std::vector<float> losses(rows), log_sums(rows), largest(rows), sums(rows), targets(rows);
  cross_entropy(DType::f32, x.data(), labels.data(), losses.data(), log_sums.data(), rows, classes);
  std::vector<float> whole(rows * classes);
  cross_entropy_gradient(DType::f32, x.data(), labels.data(), log_sums.data(), whole.data(), rows, classes);
  std::vector<double> most(rows, -INFINITY), sum(rows), target(rows);
  for (std::size_t shard = 0; shard < 2; ++shard) {
    Array part(DType::f32, rows * half);
    for (std::size_t i = 0; i < rows * half; ++i) part.set(i, x[i / half * classes + shard * half + i % half]);
    const CrossEntropyOptions options{.first = static_cast<std::int64_t>(shard * half), .classes = classes};
    cross_entropy_parts(DType::f32, part.data(), labels.data(), largest.data(), sums.data(), targets.data(), rows, half,
                        options);
    for (std::size_t r = 0; r < rows; ++r) {
      const double both = std::max<double>(most[r], largest[r]);
      sum[r] = sum[r] * std::exp(most[r] - both) + sums[r] * std::exp(largest[r] - both);
      most[r] = both, target[r] += targets[r];
    }
    std::vector<float> dx(rows * half);
    cross_entropy_gradient(DType::f32, part.data(), labels.data(), log_sums.data(), dx.data(), rows, half, options);
    for (std::size_t i = 0; i < rows * half; ++i)
      ASSERT_EQ(dx[i], whole[i / half * classes + shard * half + i % half]) << i;
  }
  for (std::size_t r = 0; r < rows; ++r) {
    largest[r] = static_cast<float>(most[r]), sums[r] = static_cast<float>(sum[r]);
    targets[r] = static_cast<float>(target[r]);
  }
  std::vector<float> again(rows);
  cross_entropy_finish(labels.data(), largest.data(), sums.data(), targets.data(), again.data(), log_sums.data(), rows);
  for (std::size_t r = 0; r < rows; ++r) EXPECT_NEAR(again[r], losses[r], 1e-5);
}

// Classes of -infinity alone, as padding of a vocabulary, are a shard that adds nothing.
TEST(CrossEntropyResult, OfAShardThatIsMaskedIsThatOfTheOthers) {
  constexpr float masked = -INFINITY;
  for (const DType type : {DType::f32, DType::bf16}) {
    Array x(type, 4);
    for (const auto& [i, value] : {std::pair{0, masked}, std::pair{1, masked}, std::pair{2, 1.0F}, std::pair{3, 2.0F}})
      x.set(static_cast<std::size_t>(i), value);
    const std::int32_t label = 3;
    float loss = 0, log_sum = 0, most[2], sum[2], target[2];
    cross_entropy(type, x.data(), &label, &loss, &log_sum, 1, 4);
    for (int shard = 0; shard < 2; ++shard)
      cross_entropy_parts(type, static_cast<const std::byte*>(x.data()) + shard * 2 * static_cast<int>(size_of(type)),
                          &label, most + shard, sum + shard, target + shard, 1, 2, {.first = shard * 2, .classes = 4});
    EXPECT_EQ(most[0], masked);
    EXPECT_EQ(sum[0], 0);
    const float both = sum[0] * std::exp(most[0] - most[1]) + sum[1], targets = target[0] + target[1];
    float joined = 0;
    cross_entropy_finish(&label, &most[1], &both, &targets, &joined, &log_sum, 1);
    EXPECT_EQ(joined, loss);
    EXPECT_NEAR(loss, 0.313262, 1e-6);
  }
}

TEST(CrossEntropyResult, HostileRowsAndBadLabels) {
  std::vector<float> x{1, NAN, 3e38F, -3e38F, -INFINITY, 2}, losses(3), log_sums(3);
  std::vector<std::int32_t> labels{-100, 0, 1};
  const auto run = [&] {
    return cross_entropy(DType::f32, x.data(), labels.data(), losses.data(), log_sums.data(), 3, 2);
  };
  const CrossEntropyResult all = run();
  EXPECT_EQ(all.counted, 2u);
  EXPECT_EQ(losses[0], 0);
  EXPECT_EQ(losses[1], 0);
  EXPECT_EQ(losses[2], 0);
  EXPECT_EQ(all.loss, 0);
  cross_entropy_gradient(DType::f32, x.data(), labels.data(), log_sums.data(), x.data(), 3, 2);  // in place
  for (const float f : x) EXPECT_EQ(f, 0);
  labels[1] = 2;
  try {
    run();
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("label 2 of row 1"), std::string::npos) << e.what();
  }
  labels[1] = -1;
  EXPECT_THROW(run(), std::invalid_argument);
  labels[1] = 0;
  EXPECT_THROW(
      cross_entropy_gradient(DType::f32, x.data(), labels.data(), log_sums.data(), x.data(), 3, 2, {.first = 1}),
      std::invalid_argument);
  EXPECT_THROW(cross_entropy(DType::f32, x.data(), labels.data(), losses.data(), log_sums.data(), 3, 2, {.classes = 5}),
               std::invalid_argument);
  EXPECT_EQ(cross_entropy(DType::f32, nullptr, nullptr, nullptr, nullptr, 0, 2).counted, 0u);
}

}  // namespace
}  // namespace trellis::kernels
