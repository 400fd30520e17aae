// RMSNorm and LayerNorm against double, within the rounding of their sums; gradients against differences.
#include <limits>
#include <stdexcept>

#include "kernels/layers/layer_norm.h"
#include "kernels/layers/rms_norm.h"
#include "tests/kernels/layers.h"

namespace trellis::kernels {
namespace {

using Values = std::vector<double>;

// Roundings that a sum along a row can put on a term: its own, those of one of the 32 sums, and of joining them.
double along(std::size_t columns) { return static_cast<double>(columns) / 32 + 7; }

double mean_of(const Values& v, const std::function<double(double)>& f) {
  double sum = 0;
  for (double x : v) sum += f(x);
  return sum / static_cast<double>(v.size());
}

Values row_of(const Array& a, std::size_t row, std::size_t columns) {
  const Values all = a.values();
  return {all.begin() + static_cast<std::ptrdiff_t>(row * columns),
          all.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns)};
}

constexpr double epsilon = 1e-5F;

double rms_scale(const Values& x) {
  return 1 / std::sqrt(mean_of(x, [](double v) { return v * v; }) + epsilon);
}

// The product dy . y: gradients are its derivatives.
double rms_product(const Values& x, const Values& weight, const Values& dy) {
  const double scale = rms_scale(x);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += dy[i] * x[i] * scale * weight[i];
  return sum;
}

void check_rms(DType type, std::size_t rows, std::size_t columns) {
  const Array x(type, rows * columns, 1, 3), weight(type, columns, 2, 2), dy(type, rows * columns, 3);
  Array y(type, rows * columns), dx(type, rows * columns), scales(DType::f32, rows), dweight(DType::f32, columns);
  auto* const kept = static_cast<float*>(scales.data());
  rms_norm(type, x.data(), weight.data(), y.data(), kept, rows, columns);
  rms_norm_gradient(type, dy.data(), x.data(), weight.data(), kept, dx.data(), static_cast<float*>(dweight.data()),
                    rows, columns);
  const double scale_error = along(columns) / 2 + 3;  // the root halves the sum's error; 3 of the rest
  Values sums(columns), sizes(columns);
  for (std::size_t row = 0; row < rows; ++row) {
    const Values v = row_of(x, row, columns), g = row_of(dy, row, columns), w = weight.values();
    const double scale = rms_scale(v);
    EXPECT_TRUE(close(scales, row, scale, scale_error * u * scale));
    const Values slope = slopes(v, [&](const Values& at) { return rms_product(at, w, g); });
    double size = 0;
    for (std::size_t i = 0; i < columns; ++i) size += std::fabs(g[i] * w[i] * v[i]);
    for (std::size_t i = 0; i < columns; ++i) {
      const double wanted = v[i] * scale * w[i];
      ASSERT_TRUE(close(y, row * columns + i, wanted, (scale_error + 2) * u * std::fabs(wanted)));
      const double terms =
          scale * (std::fabs(g[i] * w[i]) + std::fabs(v[i]) * scale * scale * size / static_cast<double>(columns));
      ASSERT_TRUE(close(dx, row * columns + i, slope[i],
                        (along(columns) + 3 * scale_error + 7) * u * terms + difference_error * 10));
      sums[i] += g[i] * v[i] * scale;
      sizes[i] += std::fabs(g[i] * v[i] * scale);
    }
  }
  for (std::size_t i = 0; i < columns; ++i)
    ASSERT_TRUE(close(dweight, i, sums[i], (static_cast<double>(rows) + scale_error + 3) * u * sizes[i]));
}

TEST(RmsNorm, AndItsGradient) {
  for (const DType type : layer_types)
    for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 7}, {5, 64}, {2, 300}, {600, 3}})
      check_rms(type, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
}

struct Standard {
  double mean, scale, size;

  explicit Standard(const Values& x)
      : mean(mean_of(x, [](double v) { return v; })),
        scale(1 / std::sqrt(mean_of(x, [&](double v) { return (v - mean) * (v - mean); }) + epsilon)),
        size(mean_of(x, [](double v) { return std::fabs(v); })) {}
};

double layer_product(const Values& x, const Values& weight, const Values& dy) {
  const Standard s(x);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += dy[i] * (x[i] - s.mean) * s.scale * weight[i];
  return sum;
}

struct LayerCase {
  DType type;
  std::size_t rows, columns;
  Array x, weight, bias, dy, y, dx, means, scales, dweight, dbias;

  LayerCase(DType t, std::size_t r, std::size_t c)
      : type(t),
        rows(r),
        columns(c),
        x(t, r * c, 1, 2, 0.5),
        weight(t, c, 2),
        bias(t, c, 3),
        dy(t, r * c, 4),
        y(t, r * c),
        dx(t, r * c),
        means(DType::f32, r),
        scales(DType::f32, r),
        dweight(DType::f32, c),
        dbias(DType::f32, c) {
    const auto floats = [](Array& a) { return static_cast<float*>(a.data()); };
    const LayerNormStatistics kept{floats(means), floats(scales)};
    layer_norm(t, x.data(), weight.data(), bias.data(), y.data(), kept, r, c);
    layer_norm_gradient(t, dy.data(), x.data(), weight.data(), kept, dx.data(), floats(dweight), floats(dbias), r, c);
  }
};

void check_layer(DType type, std::size_t rows, std::size_t columns) {
  const LayerCase c(type, rows, columns);
  const Values w = c.weight.values();
  Values sums(columns), sizes(columns), levels(columns);
  for (std::size_t row = 0; row < rows; ++row) {
    const Values v = row_of(c.x, row, columns), g = row_of(c.dy, row, columns);
    const Standard s(v);
    const double mean_error = (along(columns) + 1) * u * s.size;
    EXPECT_TRUE(close(c.means, row, s.mean, mean_error));
    const double scale_error = (along(columns) + 6) * u + mean_error * s.scale;  // relative
    EXPECT_TRUE(close(c.scales, row, s.scale, scale_error * s.scale));
    const Values slope = slopes(v, [&](const Values& at) { return layer_product(at, w, g); });
    double level = 0, tilt = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      level += std::fabs(g[i] * w[i]) / static_cast<double>(columns);
      tilt += std::fabs(g[i] * w[i] * (v[i] - s.mean) * s.scale) / static_cast<double>(columns);
    }
    for (std::size_t i = 0; i < columns; ++i) {
      const double h = (v[i] - s.mean) * s.scale;
      const double h_error = s.scale * mean_error + std::fabs(h) * (scale_error + 3 * u);
      const double wanted = h * w[i] + c.bias[i];
      ASSERT_TRUE(close(c.y, row * columns + i, wanted,
                        std::fabs(w[i]) * h_error + 2 * u * (std::fabs(h * w[i]) + std::fabs(c.bias[i]))));
      const double terms = s.scale * (std::fabs(g[i] * w[i]) + level + std::fabs(h) * tilt);
      const double through_h = s.scale * (h_error * tilt + std::fabs(h) * level * (scale_error * 4 + h_error));
      ASSERT_TRUE(close(c.dx, row * columns + i, slope[i],
                        terms * ((along(columns) + 6) * u + scale_error) + through_h + difference_error * 10));
      sums[i] += g[i] * h, levels[i] += g[i];
      sizes[i] += std::fabs(g[i]) * (std::fabs(h) * (static_cast<double>(rows) + 2) * u + h_error);
    }
  }
  for (std::size_t i = 0; i < columns; ++i) {
    ASSERT_TRUE(close(c.dweight, i, sums[i], sizes[i] * 1.01 + 1e-12));
    ASSERT_TRUE(close(c.dbias, i, levels[i], static_cast<double>(rows * rows) * u));
  }
}

TEST(LayerNorm, AndItsGradient) {
  for (const DType type : layer_types)
    for (const auto& [rows, columns] : {std::pair{1, 2}, {3, 7}, {5, 64}, {2, 300}, {600, 3}})
      check_layer(type, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
}

TEST(Norms, TheSameBitsForAnyNumberOfThreads) {
  for (const DType type : layer_types) {
    const Array x(type, 37 * 700, 1), weight(type, 700, 2);
    Array one(type, 37 * 700), five(type, 37 * 700), scales(DType::f32, 37);
    Array sum(DType::f32, 700), other(DType::f32, 700);
    auto* const kept = static_cast<float*>(scales.data());
    rms_norm(type, x.data(), weight.data(), one.data(), kept, 37, 700);
    rms_norm(type, x.data(), weight.data(), five.data(), nullptr, 37, 700, {.threads = 5});
    EXPECT_EQ(one.bytes, five.bytes);
    Array dy = one;  // and in place
    rms_norm_gradient(type, one.data(), x.data(), weight.data(), kept, five.data(), static_cast<float*>(sum.data()), 37,
                      700);
    rms_norm_gradient(type, dy.data(), x.data(), weight.data(), kept, dy.data(), static_cast<float*>(other.data()), 37,
                      700, 5);
    EXPECT_EQ(five.bytes, dy.bytes);
    EXPECT_EQ(sum.bytes, other.bytes);
  }
}

TEST(Norms, RowsWithoutNumbersAndWithoutRows) {
  std::vector<float> x{1, NAN, 2, 3, INFINITY, 1}, weight{1, 1}, bias{0, 0}, y(6);
  rms_norm(DType::f32, x.data(), weight.data(), y.data(), nullptr, 3, 2);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && y[2] > 0 && y[3] > 0 && std::isnan(y[4]) && y[5] == 0);
  layer_norm(DType::f32, x.data(), weight.data(), bias.data(), y.data(), {}, 3, 2);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && y[2] < 0 && y[3] > 0 && std::isnan(y[4]) && std::isnan(y[5]));
  EXPECT_NO_THROW(rms_norm(DType::f32, nullptr, nullptr, nullptr, nullptr, 0, 2));
  EXPECT_NO_THROW(layer_norm(DType::f32, nullptr, nullptr, nullptr, nullptr, {}, 0, 0));
  float sum[2] = {5, 5};
  rms_norm_gradient(DType::f32, nullptr, nullptr, nullptr, nullptr, nullptr, sum, 0, 2);
  EXPECT_EQ(sum[0], 0);
  EXPECT_EQ(sum[1], 0);
}

TEST(Norms, SayWhatIsWrong) {
  std::vector<float> x(6), w(2), y(6);
  const auto rms = [&](DType d, const void* in, const void* weight, void* out, std::size_t columns, int threads) {
    rms_norm(d, in, weight, out, nullptr, 3, columns, {.threads = threads});
  };
  EXPECT_THROW(rms(DType::f16, x.data(), w.data(), y.data(), 2, 1), std::invalid_argument);
  EXPECT_THROW(rms(DType::f32, nullptr, w.data(), y.data(), 2, 1), std::invalid_argument);
  EXPECT_THROW(rms(DType::f32, x.data(), nullptr, y.data(), 2, 1), std::invalid_argument);
  EXPECT_THROW(rms(DType::f32, x.data(), y.data(), y.data(), 2, 1), std::invalid_argument);
  EXPECT_THROW(rms(DType::f32, x.data(), w.data(), x.data() + 1, 1, 1), std::invalid_argument);
  EXPECT_THROW(rms(DType::f32, x.data(), w.data(), y.data(), 0, 1), std::invalid_argument);
  EXPECT_THROW(rms(DType::f32, x.data(), w.data(), y.data(), 2, -1), std::invalid_argument);
  EXPECT_THROW(rms(DType::f32, x.data(), w.data(), y.data(), std::size_t{1} << 63, 1), std::invalid_argument);
  EXPECT_THROW(layer_norm_gradient(DType::f32, x.data(), x.data(), w.data(), {y.data(), y.data()}, x.data(), w.data(),
                                   nullptr, 3, 2),
               std::invalid_argument);
}

}  // namespace
}  // namespace trellis::kernels
