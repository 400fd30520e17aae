// Reductions, scans, functions and statistics along rows.
#include <cmath>
#include <functional>

#include "kernels/layers/elementary.h"
#include "tests/sim/core/bench.h"

namespace trellis::sim::core {
namespace {

float f32(double v) { return static_cast<float>(v); }

TEST(CoreReduce, IsWithinTheRoundingsOfASum) {
  for (const std::int32_t inner : {1, 7, 40, 200}) {
    Bench b;
    const View x = b.add(holes(DType::bf16, 5, 3, inner)), z = b.add(plain(DType::f32, 5, 3));
    b.set("tensor_reduce", Engine::vector, {z}, {x}, {with(AluOp::add), with(Key::negate, 1)});
    const auto xs = b.fill(x);
    b.run();
    const auto zs = b.read(z);
    for (std::size_t o = 0; o < zs.size(); ++o) {
      double sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(inner); ++i) {
        sum += xs[o * static_cast<std::size_t>(inner) + i];
        magnitude += std::fabs(xs[o * static_cast<std::size_t>(inner) + i]);
      }
      EXPECT_NEAR(zs[o], -sum, inner * 0x1p-23 * magnitude);
    }
  }
}

double from_left(const std::vector<double>& xs, std::size_t first, std::size_t n) {
  float sum = 0;
  for (std::size_t i = first; i < first + n; ++i) sum += static_cast<float>(xs[i]);
  return sum;
}

// A published run on Trainium 1 shows this order in 4,096 sums of 128.
TEST(CoreReduce, SumsOfF32GoFromLeftToRight) {
  constexpr std::int32_t rows = 128, n = 128;
  Bench b("trn1");
  const View x = b.add(plain(DType::f32, rows, n)), z = b.add(plain(DType::f32, rows, 1));
  b.set("tensor_reduce", Engine::vector, {z}, {x}, {with(AluOp::add)});
  const auto xs = b.fill(x);
  b.run();
  const auto zs = b.read(z);
  for (std::size_t r = 0; r < rows; ++r) EXPECT_EQ(zs[r], from_left(xs, r * n, n)) << r;
}

TEST(CoreReduce, WhereTheOrderIsNotKnownBothAreOffered) {
  constexpr std::int32_t rows = 64, n = 200;
  Bench b;
  const View x = b.add(plain(DType::f32, rows, n)), z = b.add(plain(DType::f32, rows, n)),
             sums = b.add(plain(DType::f32, rows, 1));
  b.set("activation_reduce", Engine::scalar, {z, sums}, {x}, {with(ActivationFunction::copy)});
  const auto xs = b.fill(x);
  b.run();
  const auto lanes = b.read(sums);
  b.memory().use_sum_order(SumOrder::sequential);
  b.run();
  const auto sequential = b.read(sums);
  for (std::size_t r = 0; r < rows; ++r) {
    EXPECT_EQ(sequential[r], from_left(xs, r * n, n)) << r;
    EXPECT_NEAR(sequential[r], lanes[r], 1e-3) << r;
  }
  EXPECT_NE(lanes, sequential);
}

TEST(CoreReduce, ExtremesAndBits) {
  Bench b;
  const View x = b.add(plain(DType::f32, 3, 50)), z = b.add(plain(DType::f32, 3, 1));
  const auto xs = [&] {
    b.set("tensor_reduce", Engine::vector, {z}, {x}, {with(AluOp::max)});
    return b.fill(x);
  }();
  b.run();
  auto zs = b.read(z);
  for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(zs[r], *std::max_element(&xs[r * 50], &xs[r * 50] + 50));
  b.set("tensor_reduce", Engine::vector, {z}, {x}, {with(AluOp::abs_min)});
  b.run();
  zs = b.read(z);
  for (std::size_t r = 0; r < 3; ++r) {
    double least = INFINITY;
    for (std::size_t i = 0; i < 50; ++i) least = std::min(least, std::fabs(xs[r * 50 + i]));
    EXPECT_EQ(zs[r], least);
  }
  Bench c;
  const View u = c.add(plain(DType::u16, 2, 9)), v = c.add(plain(DType::u16, 2, 1));
  c.set("tensor_reduce", Engine::vector, {v}, {u}, {with(AluOp::bitwise_xor)});
  const auto us = c.fill(u, 65536);
  c.run();
  const auto vs = c.read(v);
  for (std::size_t r = 0; r < 2; ++r) {
    unsigned all = 0;
    for (std::size_t i = 0; i < 9; ++i) all ^= static_cast<unsigned>(us[r * 9 + i]);
    EXPECT_EQ(vs[r], all);
  }
}

TEST(CoreScan, CarriesItsStateAlong) {
  for (const auto& [op, op1] : {std::pair{AluOp::multiply, AluOp::add}, {AluOp::add, AluOp::max}}) {
    Bench b;
    const View x = b.add(plain(DType::f32, 4, 23)), y = b.add(plain(DType::bf16, 4, 23));
    const View first = b.add(plain(DType::f32, 4, 1)), z = b.add(plain(DType::f32, 4, 23));
    b.set("tensor_tensor_scan", Engine::vector, {z}, {x, y, first}, {with(op), with(op1, Key::op1)});
    const auto xs = b.fill(x), ys = b.fill(y), fs = b.fill(first);
    b.run();
    const auto zs = b.read(z);
    for (std::size_t r = 0; r < 4; ++r) {
      float state = f32(fs[r]);
      for (std::size_t i = r * 23; i < (r + 1) * 23; ++i) {
        const float middle = op == AluOp::multiply ? f32(xs[i]) * state : f32(xs[i]) + state;
        state = op1 == AluOp::add ? middle + f32(ys[i]) : std::max(middle, f32(ys[i]));
        EXPECT_EQ(zs[i], state);
      }
    }
  }
}

TEST(CoreScan, AccumulatorsGoOnFromOneInstructionToTheNext) {
  Bench b;
  const View x = b.add(plain(DType::f32, 2, 8)), z = b.add(plain(DType::f32, 2, 8)), s = b.add(plain(DType::f32, 2, 1));
  b.set("tensor_scalar_reduce", Engine::vector, {z, s}, {x}, {with(AluOp::add), with(Key::value, 1)});
  auto xs = b.fill(x, 100);
  b.run();
  double sums[2] = {};
  for (std::size_t i = 0; i < 16; ++i) sums[i / 8] += xs[i] + 1;
  EXPECT_EQ(b.read(s), std::vector<double>(sums, sums + 2));
  b.set("tensor_scalar_cumulative", Engine::vector, {z}, {x},
        {with(AluOp::multiply), with(Key::value, 2), with(AluOp::add, Key::op1), with(ReduceCommand::reduce)});
  b.run();
  const auto zs = b.read(z);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(zs[i], sums[i / 8] += 2 * xs[i]);
}

TEST(CoreScan, AccumulatorsSubtractEachElement) {
  Bench b;
  const View x = b.add(plain(DType::f32, 1, 3)), z = b.add(plain(DType::f32, 1, 3)), s = b.add(plain(DType::f32, 1, 1));
  b.write(x, {5, 1, 1});
  const std::vector<Attribute> minus = {with(AluOp::add), with(Key::value, 0), with(AluOp::subtract, Key::reduce)};
  b.set("tensor_scalar_reduce", Engine::vector, {z, s}, {x}, minus);
  b.run();
  EXPECT_EQ(b.read(s), std::vector<double>{5 - 1 - 1});
  auto on = minus;
  on.push_back(with(ReduceCommand::reduce));
  b.set("tensor_scalar_reduce", Engine::vector, {z, s}, {x}, on);
  b.run();
  EXPECT_EQ(b.read(s), std::vector<double>{3 - 5 - 1 - 1});
  auto loaded = minus;
  loaded.push_back(with(ReduceCommand::load_reduce));
  loaded.push_back(with(Key::value1, 10));
  b.set("tensor_scalar_reduce", Engine::vector, {z, s}, {x}, loaded);
  b.run();
  EXPECT_EQ(b.read(s), std::vector<double>{10 - 5 - 1 - 1});
}

double truth_of_the_rest(ActivationFunction f, double x) {
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (f) {
    case ActivationFunction::mish:
      return x * std::tanh(std::log(1 + std::exp(x)));
    case ActivationFunction::erf:
      return std::erf(x);
    case ActivationFunction::erf_dx:
      return 2 / std::sqrt(M_PI) * std::exp(-x * x);
    case ActivationFunction::sin:
      return std::sin(x);
    case ActivationFunction::arctan:
      return std::atan(x);
    case ActivationFunction::abs:
      return std::fabs(x);
    case ActivationFunction::sign:
      return (x > 0) - (x < 0);
    case ActivationFunction::is_finite:
      return 1;
    case ActivationFunction::tanh_dx:
      return 1 - std::tanh(x) * std::tanh(x);
    case ActivationFunction::sigmoid_dx:
      return logistic(x) * (1 - logistic(x));
    case ActivationFunction::abs_reciprocal_sqrt:
      return 1 / std::sqrt(std::fabs(x));
    case ActivationFunction::ln1p:
      return std::log(1 + x);
    default:
      return x;
  }
}

// The value of a function, in f64.
double truth(ActivationFunction f, double x) {
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double phi = 0.5 * std::erfc(-x / std::sqrt(2.0)), density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  const double tanh_argument = 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  switch (f) {
    case ActivationFunction::square:
      return x * x;
    case ActivationFunction::sqrt:
      return std::sqrt(x);
    case ActivationFunction::rsqrt:
      return 1 / std::sqrt(x);
    case ActivationFunction::exp:
      return std::exp(x);
    case ActivationFunction::log:
      return std::log(x);
    case ActivationFunction::reciprocal:
      return 1 / x;
    case ActivationFunction::relu:
      return std::max(x, 0.0);
    case ActivationFunction::lrelu:
    case ActivationFunction::prelu:
      return x < 0 ? 0.25 * x : x;
    case ActivationFunction::sigmoid:
      return logistic(x);
    case ActivationFunction::tanh:
      return std::tanh(x);
    case ActivationFunction::softplus:
      return std::log(1 + std::exp(x));
    case ActivationFunction::silu:
      return x * logistic(x);
    case ActivationFunction::silu_dx:
      return logistic(x) * (1 + x * (1 - logistic(x)));
    case ActivationFunction::gelu:
      return x * phi;
    case ActivationFunction::gelu_dx:
      return phi + x * density;
    case ActivationFunction::gelu_apprx_tanh:
      return x * logistic(tanh_argument);
    case ActivationFunction::gelu_apprx_sigmoid:
      return x * logistic(1.702 * x);
    case ActivationFunction::gelu_apprx_sigmoid_dx:
      return logistic(1.702 * x) * (1 + 1.702 * x * (1 - logistic(1.702 * x)));
    default:
      return truth_of_the_rest(f, x);
  }
}
TEST(CoreActivation, EveryFunctionIsNearItsDefinition) {
  for (std::size_t f = 0; f <= static_cast<std::size_t>(ActivationFunction::ln1p); ++f) {
    const auto func = static_cast<ActivationFunction>(f);
    Bench b;
    const View x = b.add(plain(DType::f32, 7, 61)), z = b.add(plain(DType::f32, 7, 61));
    b.set("activation", Engine::scalar, {z}, {x}, {with(func), with(Key::value, 0.25)});
    auto xs = b.fill(x);
    if (func == ActivationFunction::log || func == ActivationFunction::sqrt || func == ActivationFunction::rsqrt ||
        func == ActivationFunction::ln1p)
      for (double& v : xs) v = std::fabs(v);
    b.write(x, xs);
    b.run();
    const auto zs = b.read(z);
    for (std::size_t i = 0; i < zs.size(); ++i) {
      const double want = truth(func, xs[i]);
      const bool cancels =
          func == ActivationFunction::silu_dx || func == ActivationFunction::gelu_dx;  // terms cancel near their zero
      EXPECT_NEAR(zs[i], want, std::fabs(want) * 0x1p-21 + (cancels ? 0x1p-22 : 1e-9)) << name(func) << " of " << xs[i];
    }
  }
}

TEST(CoreActivation, ExpIsTheKernels) {
  Bench b;
  const View x = b.add(plain(DType::f32, 3, 77)), z = b.add(plain(DType::f32, 3, 77));
  b.set("activation", Engine::scalar, {z}, {x},
        {with(ActivationFunction::exp), with(Key::scale, 20), with(Key::bias, -3)});
  const auto xs = b.fill(x);
  b.run();
  const auto zs = b.read(z);
  for (std::size_t i = 0; i < zs.size(); ++i) EXPECT_EQ(zs[i], kernels::exponential(f32(xs[i]) * 20.0F + -3.0F));
}

TEST(CoreActivation, ScalesAddsAndSums) {
  Bench b;
  const View x = b.add(holes(DType::bf16, 5, 2, 9)), bias = b.add(plain(DType::f32, 5, 1));
  const View scale = b.add(plain(DType::f32, 5, 1)), sums = b.add(plain(DType::f32, 5, 1));
  const View z = b.add(plain(DType::bf16, 5, 18));
  b.set("activation_reduce", Engine::scalar, {z, sums}, {x, bias, scale}, {with(ActivationFunction::square)});
  const auto xs = b.fill(x), bs = b.fill(bias), ss = b.fill(scale);
  b.run();
  const auto zs = b.read(z), totals = b.read(sums);
  for (std::size_t r = 0; r < 5; ++r) {
    double sum = 0;
    for (std::size_t i = r * 18; i < (r + 1) * 18; ++i) {
      const float t = f32(xs[i]) * f32(ss[r]) + f32(bs[r]);
      EXPECT_EQ(zs[i], stored(DType::bf16, t * t));
      sum += t * t;
    }
    EXPECT_NEAR(totals[r], sum, 18 * 0x1p-23 * sum);
  }
}

TEST(CoreBatchNorm, AggregatesPartsToMeanAndVariance) {
  Bench b;
  const View x = b.add(plain(DType::f32, 6, 301)), y = b.add(plain(DType::f32, 6, 12)),
             z = b.add(plain(DType::f32, 6, 2));
  View first = x, second = x, to_first = y, to_second = y;
  first.dim[0].count = 200;
  second.dim[0].count = 101;
  second.offset += 200 * 4;
  to_first.dim[0].count = to_second.dim[0].count = 6;
  to_second.offset += 6 * 4;
  b.set("bn_stats", Engine::vector, {to_first}, {first});
  const auto xs = b.fill(x);
  b.run();
  b.set("bn_stats", Engine::vector, {to_second}, {second});
  b.run();
  b.set("bn_aggr", Engine::vector, {z}, {y});
  b.run();
  const auto zs = b.read(z);
  for (std::size_t r = 0; r < 6; ++r) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < 301; ++i) mean += xs[r * 301 + i] / 301;
    for (std::size_t i = 0; i < 301; ++i) variance += std::pow(xs[r * 301 + i] - mean, 2) / 301;
    EXPECT_NEAR(zs[r * 2], mean, 1e-5);
    EXPECT_NEAR(zs[r * 2 + 1], variance, 1e-5);
  }
}

TEST(CoreExponential, SubtractsAndSums) {
  Bench b("trn3");
  const View x = b.add(plain(DType::f32, 4, 30)), most = b.add(plain(DType::f32, 4, 1));
  const View z = b.add(plain(DType::f32, 4, 30)), s = b.add(plain(DType::f32, 4, 1));
  b.set("exponential", Engine::vector, {z, s}, {x, most});
  const auto xs = b.fill(x), ms = b.fill(most);
  b.run();
  const auto zs = b.read(z), ss = b.read(s);
  for (std::size_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (std::size_t i = r * 30; i < (r + 1) * 30; ++i) {
      EXPECT_EQ(zs[i], kernels::exponential(f32(xs[i]) - f32(ms[r])));
      sum += zs[i];
    }
    EXPECT_NEAR(ss[r], sum, 30 * 0x1p-23 * sum);
  }
}

TEST(CoreActivate2, IsTwoOperationsAndAFunction) {
  Bench b("trn3");
  const View x = b.add(plain(DType::f32, 3, 20)), c = b.add(plain(DType::f32, 3, 1)),
             z = b.add(plain(DType::f32, 3, 20));
  b.set("activate2", Engine::scalar, {z}, {x, c},
        {with(ActivationFunction::prelu), with(Key::bias, 0.5), with(AluOp::multiply), with(Key::value, 3),
         with(AluOp::subtract, Key::op1), with(Key::reverse1, 1)});
  const auto xs = b.fill(x), cs = b.fill(c);
  b.run();
  const auto zs = b.read(z);
  for (std::size_t i = 0; i < zs.size(); ++i) {
    const float t = f32(cs[i / 20]) - f32(xs[i]) * 3;
    EXPECT_EQ(zs[i], t < 0 ? t * 0.5F : t);
  }
}

TEST(CoreReciprocal, OfBothKinds) {
  for (const char* kind : {"reciprocal", "rsqrt"}) {
    Bench b;
    const View x = b.add(plain(DType::f32, 3, 20)), z = b.add(plain(DType::f32, 3, 20));
    b.set(kind, kind[1] == 'e' ? Engine::vector : Engine::gpsimd, {z}, {x});
    const auto xs = b.fill(x, 100);
    b.run();
    const auto zs = b.read(z);
    for (std::size_t i = 0; i < zs.size(); ++i)
      EXPECT_EQ(zs[i], kind[1] == 'e' ? 1 / f32(xs[i]) : 1 / std::sqrt(f32(xs[i])));
  }
}

}  // namespace
}  // namespace trellis::sim::core
