// SGD and LAMB against their formulas in f64; independence of threads and shards; bad input.
#include <gtest/gtest.h>

#include "kernels/optimizers/lamb.h"
#include "kernels/optimizers/sgd.h"
#include "kernels/reduce/dot.h"
#include "tests/kernels/optimizer_case.h"

namespace trellis::kernels {
namespace {

constexpr std::size_t shards[][2] = {{0, 1}, {1, 4099}, {4099, 33333}, {33333, 70001}};
constexpr std::size_t whole_n = 70001;

// g is off by 4 u of its terms, the momentum by 8 u of its terms, nesterov's direction by 12 u, the parameter by the
// direction's 14 u and 2 u of itself.
TEST(Sgd, IsTheFormula) {
  for (const bool nesterov : {false, true})
    for (const bool plain : {false, true})
      for_each_case([&](WeightStorage keep, DType gradient, DType state) {
        if (plain && nesterov) return;
        Case c(keep, gradient, state, 500);
        c.fill(3);
        const Case before = c;
        const double mu = plain ? 0 : 0.875, dampening = plain || nesterov ? 0 : 0.1;
        const SgdOptions o{0.03, mu, dampening, 0.01, nesterov};
        sgd(c.weights(), c.gradients(0.3), state, plain ? nullptr : c.first.from(0), c.size(), o);
        for (std::size_t i = 0; i < c.size(); ++i) {
          const double p = before.kept(i), g = before.gradient.at(i) * 0.3 + 0.01 * p;
          const double m = plain ? g : mu * before.first.at(i) + (1 - dampening) * g;
          const double direction = nesterov ? g + mu * m : m, value = p - 0.03 * direction;
          const double terms = std::fabs(before.gradient.at(i)) + std::fabs(p) + std::fabs(before.first.at(i));
          ASSERT_NEAR(c.kept(i), value,
                      unit * (2 * std::fabs(p) + 0.03 * 14 * 2 * terms) + c.keeping_error(value) * 1.01)
              << name(keep) << " " << i;
          if (!plain) {
            ASSERT_NEAR(c.first.at(i), m, 8 * unit * terms + c.state_error(m) * 1.01);
          }
        }
        EXPECT_EQ(c.second, before.second);
        if (plain) {
          EXPECT_EQ(c.first, before.first);
        }
      });
}

TEST(Sgd, DoesNotDependOnThreadsOrShards) {
  for_each_case([&](WeightStorage keep, DType gradient, DType state) {
    Case start(keep, gradient, state, whole_n);
    start.fill(5);
    SgdOptions o{.nesterov = true, .random = {.seed = 1, .step = 3, .tensor = 4, .first = 999}};
    Case whole = start;
    sgd(whole.weights(), whole.gradients(), state, whole.first.from(0), whole_n, o);
    for (const int threads : {2, 7}) {
      Case c = start;
      o.threads = threads;
      sgd(c.weights(), c.gradients(), state, c.first.from(0), whole_n, o);
      ASSERT_TRUE(c == whole) << threads << " threads";
    }
    Case c = start;
    for (const auto& [from, to] : shards) {
      SgdOptions shard = o;
      shard.random.first += from;
      sgd(c.weights(from), c.gradients(1, from), state, c.first.from(from), to - from, shard);
    }
    ASSERT_TRUE(c == whole) << "by shards";
  });
}

TEST(Sgd, RefusesBadInput) {
  Case c(WeightStorage::f32, DType::f32, DType::f32, 8);
  const auto refuses = [&](const SgdOptions& o, void* momentum) {
    EXPECT_THROW(sgd(c.weights(), c.gradients(), DType::f32, momentum, 8, o), std::invalid_argument);
  };
  void* const momentum = c.first.from(0);
  refuses({.learning_rate = -1}, momentum);
  refuses({.learning_rate = NAN}, momentum);
  refuses({.momentum = 1}, momentum);
  refuses({.momentum = -0.1}, momentum);
  refuses({.dampening = 1.5}, momentum);
  refuses({.weight_decay = -1}, momentum);
  refuses({.momentum = 0, .nesterov = true}, momentum);
  refuses({.dampening = 0.5, .nesterov = true}, momentum);
  refuses({.momentum = 0, .dampening = 0.5}, nullptr);
  refuses({}, nullptr);
  refuses({}, c.values.from(0));
  EXPECT_THROW(sgd(c.weights(), c.gradients(), DType::f16, momentum, 8, {}), std::invalid_argument);
  EXPECT_THROW(sgd(c.weights(), {.type = DType::f64, .values = momentum}, DType::f32, momentum, 8, {}),
               std::invalid_argument);
}

template <class Test>
void for_each_lamb(const Test& test) {
  for_each_case([&](WeightStorage keep, DType gradient, DType moments) {
    if (moments == DType::f32) test(keep, gradient);
  });
}

// u is off by 18 u of what m's terms make of it and 4 u of the decay's; the sums add up squares of what was computed.
TEST(Lamb, IsTheFormula) {
  for_each_lamb([&](WeightStorage keep, DType gradient) {
    Case c(keep, gradient, DType::f32, 700);
    c.fill(4);
    const Case before = c;
    const LambOptions o{.learning_rate = 0.02, .step = 6};
    const double b1 = 1 - std::pow(o.beta1, 6), b2 = 1 - std::pow(o.beta2, 6);
    std::vector<double> u(c.size()), error(c.size());
    double parameters = 0, direction = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const double g = before.gradient.at(i) * 0.3, p = before.kept(i);
      const double m = o.beta1 * before.first.at(i) + (1 - o.beta1) * g;
      const double v = o.beta2 * before.second.at(i) + (1 - o.beta2) * g * g;
      const double below = std::sqrt(v / b2) + o.epsilon;
      u[i] = m / b1 / below + o.weight_decay * p;
      const double terms = std::fabs(o.beta1 * before.first.at(i)) + std::fabs((1 - o.beta1) * g);
      error[i] = unit * (20 * terms / b1 / below + 6 * o.weight_decay * std::fabs(p));
      parameters += p * p, direction += u[i] * u[i];
    }
    const LambSquaredNorms sums = lamb_moments(c.weights(), c.gradients(0.3), c.moments(), c.size(), o);
    EXPECT_NEAR(sums.parameters, parameters, parameters * 1e-12);
    EXPECT_NEAR(sums.direction, direction, direction * 1e-5);
    EXPECT_EQ(c.values, before.values);
    const double trust = trust_ratio(sums);
    EXPECT_NEAR(trust, std::sqrt(parameters / direction), trust * 1e-5);
    lamb_apply(c.weights(), c.moments(), trust, c.size(), o);
    for (std::size_t i = 0; i < c.size(); ++i) {
      const double p = before.kept(i), value = p - 0.02 * trust * u[i];
      ASSERT_NEAR(
          c.kept(i), value,
          0.02 * trust * (error[i] + 3 * unit * std::fabs(u[i])) + unit * std::fabs(p) + c.keeping_error(value) * 1.01)
          << name(keep) << " " << i;
    }
  });
}

TEST(Lamb, DoesNotDependOnThreads) {
  for_each_lamb([&](WeightStorage keep, DType gradient) {
    Case start(keep, gradient, DType::f32, whole_n);
    start.fill(6);
    LambOptions o{.step = 3, .random = {.seed = 1, .step = 3, .first = 77}};
    Case whole = start;
    const double trust = lamb(whole.weights(), whole.gradients(), whole.moments(), whole_n, o);
    for (const int threads : {2, 3, 7}) {
      Case c = start;
      o.threads = threads;
      EXPECT_EQ(lamb(c.weights(), c.gradients(), c.moments(), whole_n, o), trust);
      ASSERT_TRUE(c == whole) << threads << " threads";
    }
    if (keep <= WeightStorage::f32_copy) {
      EXPECT_EQ(lamb_moments(start.weights(), start.gradients(), start.moments(), whole_n, o).parameters,
                sum_of_squares(DType::f32, start.values.from(0), whole_n));
    }
    Case c = start, again = start;
    lamb_apply(c.weights(), c.moments(), 0.5, whole_n, o);
    for (const auto& [from, to] : shards) {
      LambOptions shard = o;
      shard.random.first += from;
      lamb_apply(again.weights(from), again.moments(from), 0.5, to - from, shard);
    }
    ASSERT_TRUE(c == again) << "by shards";
  });
}

TEST(Lamb, TrustIsOneWithoutALength) {
  EXPECT_EQ(trust_ratio({.parameters = 0, .direction = 4}), 1);
  EXPECT_EQ(trust_ratio({.parameters = 4, .direction = 0}), 1);
  EXPECT_EQ(trust_ratio({.parameters = 9, .direction = 4}), 1.5);
  for (const double bad : {double{NAN}, double{INFINITY}})
    for (const double other : {0.0, 4.0, bad}) {
      EXPECT_TRUE(std::isnan(trust_ratio({.parameters = bad, .direction = other}))) << bad << " " << other;
      EXPECT_TRUE(std::isnan(trust_ratio({.parameters = other, .direction = bad}))) << bad << " " << other;
    }
  EXPECT_THROW(trust_ratio({.parameters = -1, .direction = 4}), std::invalid_argument);
}

TEST(Lamb, RefusesBadInput) {
  Case c(WeightStorage::f32, DType::f32, DType::f32, 8);
  c.gradient = StateArray(DType::f32, 8, 1);
  const auto refuses = [&](const LambOptions& o) {
    EXPECT_THROW(lamb(c.weights(), c.gradients(), c.moments(), 8, o), std::invalid_argument);
  };
  refuses({.learning_rate = -1});
  refuses({.beta1 = 1});
  refuses({.beta2 = NAN});
  refuses({.epsilon = -1});
  refuses({.weight_decay = INFINITY});
  refuses({.step = 0});
  refuses({.threads = -3});
  refuses({.random = {.first = ~std::uint64_t{0}}});
  const Moments m = c.moments();
  EXPECT_THROW(lamb(c.weights(), {}, m, 8, {}), std::invalid_argument);
  EXPECT_THROW(lamb({}, c.gradients(), m, 8, {}), std::invalid_argument);
  EXPECT_THROW(lamb(c.weights(), c.gradients(), {}, 8, {}), std::invalid_argument);
  EXPECT_THROW(lamb(c.weights(), c.gradients(), {DType::f32, m.first, m.first}, 8, {}), std::invalid_argument);
  EXPECT_THROW(lamb(c.weights(), c.gradients(), {DType::bf16, m.first, m.second}, 8, {}), std::invalid_argument);
  EXPECT_THROW(
      lamb({.keep = WeightStorage::f32_copy, .values = c.values.from(0), .copy = m.first}, c.gradients(), m, 8, {}),
      std::invalid_argument);
  EXPECT_THROW(lamb_apply(c.weights(), m, -1, 8, {}), std::invalid_argument);
  EXPECT_EQ(c.first, StateArray(DType::f32, 8)) << "changed by a call that threw";
}

}  // namespace
}  // namespace trellis::kernels
