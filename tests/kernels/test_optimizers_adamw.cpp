// AdamW against its formula in f64, and what makes its bf16 forms work.
#include <gtest/gtest.h>

#include "kernels/optimizers/adamw.h"
#include "tests/kernels/optimizer_case.h"
#include "tests/why.h"

namespace trellis::kernels {
namespace {

struct Expected {
  double first, second, value, bound;
};

// With unit u: m is off by at most 5 u of its terms' sizes, v by 9 u, the divisor by 9 u, and so the parameter by 6 u
// of itself and 22 u of what m's terms would move it.
Expected expected(const Case& c, std::size_t i, double scale, const AdamWOptions& o) {
  const double g = c.gradient.at(i) * scale, t = static_cast<double>(o.step);
  const double terms = std::fabs(o.beta1 * c.first.at(i)) + std::fabs((1 - o.beta1) * g);
  const double m = o.beta1 * c.first.at(i) + (1 - o.beta1) * g;
  const double v = o.beta2 * c.second.at(i) + (1 - o.beta2) * g * g;
  const double b1 = 1 - std::pow(o.beta1, t), b2 = 1 - std::pow(o.beta2, t),
               decay = 1 - o.learning_rate * o.weight_decay;
  const double p = c.kept(i);
  const bool first = o.order == AdamWDecayOrder::decay_first;
  const double move = first ? o.learning_rate / b1 / (std::sqrt(v / b2) + o.epsilon)
                            : o.learning_rate * std::sqrt(b2) / b1 / (std::sqrt(v) + o.epsilon);
  const double value = first ? p * decay - move * m : (p - move * m) * decay;
  return {m, v, value, unit * (6 * std::fabs(p) + 22 * move * terms)};
}

TEST(AdamW, IsTheFormula) {
  for (const auto order : {AdamWDecayOrder::decay_first, AdamWDecayOrder::decay_last})
    for (const std::uint64_t step : {1, 7, 100000})
      for_each_case([&](WeightStorage keep, DType gradient, DType moments) {
        Case c(keep, gradient, moments, 500);
        c.fill(step);
        const Case before = c;
        const AdamWOptions o{.learning_rate = 0.02, .epsilon = 1e-6, .step = step, .order = order};
        adamw(c.weights(), c.gradients(0.3), c.moments(), c.size(), o);
        EXPECT_EQ(c.gradient, before.gradient);
        for (std::size_t i = 0; i < c.size(); ++i) {
          const Expected e = expected(before, i, 0.3, o);
          const double terms = std::fabs(before.first.at(i)) + std::fabs(before.gradient.at(i));
          ASSERT_NEAR(c.first.at(i), e.first, 5 * unit * terms + c.state_error(e.first) * 1.01) << name(keep);
          ASSERT_NEAR(c.second.at(i), e.second, 9 * unit * e.second + c.state_error(e.second) * 1.01);
          ASSERT_NEAR(c.kept(i), e.value, e.bound + c.keeping_error(e.value) * 1.01) << name(keep) << " " << i;
          if (keep == WeightStorage::f32_copy) {
            ASSERT_EQ(c.copy.at(i), widen_bf16(bf16_nearest(static_cast<float>(c.values.at(i)))));
          }
        }
      });
}

TEST(AdamW, DoesNotDependOnThreadsOrShards) {
  constexpr std::size_t n = 70001;
  for_each_case([&](WeightStorage keep, DType gradient, DType moments) {
    Case start(keep, gradient, moments, n);
    start.fill(5);
    AdamWOptions o{.step = 3, .random = {.seed = 1, .step = 3, .tensor = 4, .first = 12345}};
    Case whole = start;
    adamw(whole.weights(), whole.gradients(), whole.moments(), n, o);
    for (const int threads : {2, 3, 7}) {
      Case c = start;
      o.threads = threads;
      adamw(c.weights(), c.gradients(), c.moments(), n, o);
      ASSERT_TRUE(c == whole) << threads << " threads";
    }
    Case c = start;
    for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 4099}, {4099, 33333}, {33333, n}}) {
      AdamWOptions shard = o;
      shard.random.first += from;
      adamw(c.weights(from), c.gradients(1, from), c.moments(from), to - from, shard);
    }
    ASSERT_TRUE(c == whole) << "by shards";
  });
}

// Parameters after steps that each move them by a sixteenth of bf16's step.
Case drifted(WeightStorage keep, int steps) {
  Case c(keep, DType::bf16, DType::f32, 4096);
  c.gradient = StateArray(DType::bf16, c.size(), 1);
  c.values = StateArray(type_of(keep), c.size(), 0.75);
  for (int step = 1; step <= steps; ++step) {
    const auto t = static_cast<std::uint64_t>(step);
    adamw(c.weights(), c.gradients(), c.moments(), c.size(),
          {.learning_rate = 0x1p-12, .weight_decay = 0, .step = t, .random = {.seed = 11, .step = t}});
  }
  return c;
}

double mean(const Case& c) {
  double sum = 0;
  for (std::size_t i = 0; i < c.size(); ++i) sum += c.kept(i);
  return sum / static_cast<double>(c.size());
}

TEST(AdamW, SmallUpdatesAddUpUnlessRoundedToNearest) {
  constexpr int steps = 64;
  constexpr double there = 0.75 - steps * 0x1p-12, step = 0x1p-8;
  EXPECT_EQ(mean(drifted(WeightStorage::bf16_nearest, steps)), 0.75);
  EXPECT_NEAR(mean(drifted(WeightStorage::f32, steps)), there, 1e-6);
  EXPECT_NEAR(mean(drifted(WeightStorage::bf16_kahan, steps)), there, steps * 0x1p-17);
  const double deviation = step * std::sqrt(steps * (1.0 / 16) * (15.0 / 16) / 4096);
  EXPECT_NEAR(mean(drifted(WeightStorage::bf16_stochastic, steps)), there, 5 * deviation);
  EXPECT_LT(5 * deviation, (0.75 - there) / 10);  // so that a mean that did not move would fail
}

// Rounded to nearest, 0.999 of a bf16 number is the same number, so the second moment would never decay.
TEST(AdamW, SecondMomentsInBf16Decay) {
  Case c(WeightStorage::f32, DType::f32, DType::bf16, 4096);
  c.second = StateArray(DType::bf16, c.size(), 1);
  for (std::uint64_t t = 1; t <= 100; ++t)
    adamw(c.weights(), c.gradients(), c.moments(), c.size(), {.step = t, .random = {.seed = 2, .step = t}});
  double sum = 0;
  for (std::size_t i = 0; i < c.size(); ++i) sum += c.second.at(i);
  const double deviation = 0x1p-8 * std::sqrt(100 * 0.25 * 0.75 / 4096);
  EXPECT_NEAR(sum / 4096, std::pow(0.999, 100), 5 * deviation);
}

TEST(AdamW, NanAndInfinityStayInTheirElement) {
  for_each_case([&](WeightStorage keep, DType gradient, DType moments) {
    Case clean(keep, gradient, moments, 100);
    clean.fill(8);
    Case c = clean;
    c.gradient.set(17, std::nan(""));
    c.gradient.set(40, INFINITY);
    for (Case* one : {&clean, &c}) adamw(one->weights(), one->gradients(), one->moments(), 100, {});
    for (std::size_t i = 0; i < 100; ++i) {
      if (i == 17 || i == 40) {
        StateArray nan(type_of(keep), 1, std::numeric_limits<double>::quiet_NaN());
        EXPECT_EQ(std::memcmp(c.values.from(i), nan.from(0), size_of(nan.type)), 0);  // the canonical NaN
        EXPECT_TRUE(i == 40 ? c.second.at(i) == INFINITY : std::isnan(c.second.at(i)));
        if (keep == WeightStorage::bf16_kahan) {
          EXPECT_EQ(c.rest.at(i), 0);
        }
      } else {
        ASSERT_EQ(c.kept(i), clean.kept(i)) << i;
        ASSERT_EQ(c.second.at(i), clean.second.at(i)) << i;
      }
    }
  });
}

// What does not fit bf16 becomes an infinity with nothing left over, not a NaN one step later.
TEST(AdamW, OverflowIsAnInfinity) {
  Case c(WeightStorage::bf16_kahan, DType::f32, DType::f32, 1);
  c.values.set(0, -0x1.FEp127);
  c.rest.set(0, -0x1p119);
  c.gradient.set(0, 1);
  for (std::uint64_t t = 1; t <= 2; ++t) {
    adamw(c.weights(), c.gradients(), c.moments(), 1, {.learning_rate = 0x1p120, .weight_decay = 0, .step = t});
    EXPECT_EQ(c.kept(0), -INFINITY);
  }
}

std::string complaint(const Weights& w, const Gradient& g, const Moments& m, std::size_t n, const AdamWOptions& o) {
  return why([&] { adamw(w, g, m, n, o); });
}

TEST(AdamW, RefusesBadOptions) {
  Case c(WeightStorage::f32, DType::f32, DType::f32, 8);
  const auto says = [&](const AdamWOptions& o, std::string_view words, double scale = 1) {
    const std::string said = complaint(c.weights(), c.gradients(scale), c.moments(), 8, o);
    EXPECT_NE(said.find(words), std::string::npos) << said << " lacks " << words;
  };
  says({.learning_rate = -0.5}, "learning_rate is -0.5");
  says({.learning_rate = NAN}, "learning_rate is nan");
  says({.learning_rate = 1e300}, "learning_rate is 1e+300");
  says({.beta1 = 1}, "beta1 is 1;");
  says({.beta2 = -0.25}, "beta2 is -0.25");
  says({.epsilon = -1e-8}, "epsilon is -1e-08");
  says({.weight_decay = INFINITY}, "weight_decay is inf");
  says({.step = 0}, "step is 0");
  says({.order = static_cast<AdamWDecayOrder>(7)}, "number 7");
  says({.threads = -1}, "-1 threads");
  says({.random = {.first = ~std::uint64_t{3}}}, "pass the last index");
  says({}, "scale is inf", INFINITY);
  says({}, "scale is nan", NAN);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(c.kept(i), 0);
}

TEST(AdamW, RefusesBadMemory) {
  Case c(WeightStorage::f32, DType::f32, DType::f32, 8);
  const Weights w = c.weights();
  const Moments m = c.moments();
  const auto says = [&](const Weights& weights, const Gradient& g, const Moments& moments, std::string_view words) {
    const std::string said = complaint(weights, g, moments, 8, {});
    EXPECT_NE(said.find(words), std::string::npos) << said << " lacks " << words;
  };
  says({}, c.gradients(), m, "the parameters is null");
  says(w, {}, m, "the gradient is null");
  says(w, c.gradients(), {}, "the first moments is null");
  says(w, c.gradients(), {.first = m.first, .second = c.first.from(1)}, "overlaps");
  says(w, {.values = w.values}, m, "overlaps");
  says({.keep = WeightStorage::f32_copy, .values = w.values}, c.gradients(), m, "the bf16 copy is null");
  says({.keep = WeightStorage::bf16_kahan, .values = w.values}, c.gradients(), m, "rest is null");
  says({.keep = static_cast<WeightStorage>(9), .values = w.values}, c.gradients(), m, "number 9");
  says(w, {.type = DType::f16, .values = c.gradient.from(0)}, m, "the gradient can't be f16");
  says(w, c.gradients(), {.type = DType::i32, .first = m.first, .second = m.second}, "the moments can't be i32");
  EXPECT_NE(complaint(w, c.gradients(), m, std::size_t{1} << 62, {}).find("more than memory can hold"),
            std::string::npos);
  EXPECT_EQ(complaint({}, {}, {}, 0, {}), "");  // nothing to do, nothing to point to
}

}  // namespace
}  // namespace trellis::kernels
