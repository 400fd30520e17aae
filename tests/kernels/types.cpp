// Every function with every element type, or pair of types: it works where the registries have a kernel, and elsewhere
// names the type.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <stdexcept>

#include "kernels/dispatch/registry.h"
#include "kernels/layers/activation.h"
#include "kernels/layers/cross_entropy.h"
#include "kernels/layers/embedding.h"
#include "kernels/layers/layer_norm.h"
#include "kernels/layers/matmul.h"
#include "kernels/layers/rms_norm.h"
#include "kernels/layers/rotary.h"
#include "kernels/layers/rows.h"
#include "kernels/layers/softmax.h"
#include "kernels/optimizers/adamw.h"
#include "kernels/optimizers/lamb.h"
#include "kernels/optimizers/sgd.h"
#include "kernels/reduce/cast.h"
#include "kernels/reduce/dot.h"
#include "kernels/reduce/elementwise.h"
#include "kernels/reduce/reduce.h"

namespace trellis::kernels {
namespace {

constexpr std::size_t n = 8;

struct Memory {
  alignas(64) std::array<std::byte, 64> bytes{};
  void* at() { return bytes.data(); }
  float* floats() { return reinterpret_cast<float*>(bytes.data()); }
  const std::int32_t* ints() { return reinterpret_cast<const std::int32_t*>(bytes.data()); }
};

struct TypePairs : testing::Test {
  Memory a, b, c, d, e, f;
};

bool registered(const std::string& name) { return kernels().contains(name) || row_kernels().contains(name); }

// Checks that a call works exactly where it should, and otherwise names the type.
void expect(bool works, DType type, const std::string& what, const std::function<void()>& call) {
  try {
    call();
    EXPECT_TRUE(works) << what << " took " << name(type);
  } catch (const std::invalid_argument& refusal) {
    EXPECT_FALSE(works) << refusal.what();
    EXPECT_NE(std::string(refusal.what()).find(name(type)), std::string::npos) << refusal.what();
  }
}

std::string with(std::string_view family, DType type) { return std::string(family) + "." + std::string(name(type)); }

TEST_F(TypePairs, Casts) {
  for (const DType from : dtypes())
    for (const DType to : dtypes())
      for (const Rounding r : {Rounding::nearest, Rounding::truncate, Rounding::stochastic}) {
        const bool works = registered(with(with("cast", from), to) + ".nearest");
        expect(works, from, "cast", [&] { cast(from, a.at(), to, b.at(), n, {.rounding = r}); });
        expect(works, to, "cast", [&] { cast(from, a.at(), to, b.at(), n, {.rounding = r}); });
      }
}

TEST_F(TypePairs, Reductions) {
  const void* const sources[] = {a.at(), b.at()};
  for (std::size_t i = 0; i < reduction_count; ++i)
    for (const DType type : dtypes())
      for (const Rounding r : {Rounding::nearest, Rounding::truncate, Rounding::stochastic}) {
        const auto op = static_cast<Reduction>(i);
        const bool rounds = is_float(type) && type != DType::f64 && type != DType::f32;
        const std::string rounding(name(rounds ? r : Rounding::nearest));
        expect(registered(with("reduce." + std::string(name(op)), type) + "." + rounding), type, "reduce",
               [&] { reduce(op, type, sources, c.at(), n, {.rounding = r}); });
      }
}

TEST_F(TypePairs, Elementwise) {
  for (const DType type : dtypes()) {
    expect(true, type, "fill", [&] { fill(type, a.at(), n, 1); });
    for (const Rounding r : {Rounding::nearest, Rounding::truncate, Rounding::stochastic}) {
      const bool works = registered(with("scale", type) + ".nearest") && r != Rounding::truncate;
      expect(works, type, "scale", [&] { scale(type, 2, a.at(), b.at(), n, {.rounding = r}); });
      expect(works, type, "axpy", [&] { axpy(type, 2, a.at(), b.at(), n, {.rounding = r}); });
    }
    expect(registered(with("dot", type)), type, "dot", [&] { dot(type, a.at(), b.at(), n); });
    expect(registered(with("squares", type)), type, "squares", [&] { sum_of_squares(type, a.at(), n); });
    const bool works = registered(with("silu", type));
    for (const auto x : {Activation::silu, Activation::gelu_erf, Activation::gelu_tanh}) {
      expect(works, type, "activate", [&] { activate(x, type, a.at(), b.at(), n); });
      expect(works, type, "activate_gradient", [&] { activate_gradient(x, type, a.at(), b.at(), c.at(), n); });
    }
    expect(works, type, "swiglu", [&] { swiglu(type, a.at(), b.at(), c.at(), n); });
    expect(works, type, "swiglu_gradient", [&] { swiglu_gradient(type, a.at(), b.at(), c.at(), d.at(), e.at(), n); });
  }
}

TEST_F(TypePairs, Rows) {
  for (const DType type : dtypes()) {
    const auto check = [&](const char* family, const std::function<void()>& call) {
      expect(registered(with(family, type)), type, family, call);
    };
    check("rms_norm", [&] { rms_norm(type, a.at(), b.at(), c.at(), nullptr, 2, 4); });
    check("rms_norm_gradient",
          [&] { rms_norm_gradient(type, a.at(), b.at(), c.at(), d.floats(), e.at(), f.floats(), 2, 4); });
    check("layer_norm", [&] { layer_norm(type, a.at(), b.at(), c.at(), d.at(), {}, 2, 4); });
    check("layer_norm_gradient", [&] {
      layer_norm_gradient(type, a.at(), b.at(), c.at(), {d.floats(), d.floats()}, e.at(), nullptr, nullptr, 2, 4);
    });
    check("softmax", [&] { softmax(type, a.at(), b.at(), 2, 4); });
    check("softmax_gradient", [&] { softmax_gradient(type, a.at(), b.at(), c.at(), 2, 4); });
    const Memory zeros;
    a = b = zeros;  // labels
    check("cross_entropy", [&] { cross_entropy(type, a.at(), b.ints(), c.floats(), d.floats(), 2, 4); });
    check("cross_entropy_gradient", [&] { cross_entropy_gradient(type, a.at(), b.ints(), c.floats(), d.at(), 2, 4); });
  }
}

TEST_F(TypePairs, TokensAndProducts) {
  a = b = Memory{};
  for (const DType type : dtypes()) {
    const bool works = type == DType::f32 || type == DType::bf16;
    const RotaryShape shape{.rows = 2, .heads = 1, .head_size = 4, .turned = 4, .stride = 4};
    expect(works, type, "rotary", [&] { rotary(type, c.at(), d.at(), shape, {a.floats(), b.floats(), 2}); });
    expect(works, type, "embedding", [&] { embedding({type, 2, 4}, c.at(), a.ints(), d.at(), 2); });
    expect(works, type, "embedding_gradient", [&] {
      embedding_gradient({type, 2, 4}, c.at(), a.ints(), d.at(), 2, {.dy = DType::bf16});
    });
    expect(works, type, "embedding_gradient", [&] {
      embedding_gradient({DType::f32, 2, 4}, c.at(), a.ints(), d.at(), 2, {.dy = type});
    });
    for (const DType to : dtypes()) {
      const bool product = works && (to == DType::f32 || to == type);
      for (const DType named : {type, to})
        expect(product, named, "matmul", [&] { matmul({2, 2, 2}, type, {a.at(), 2}, {b.at(), 2}, to, c.at(), 2); });
    }
  }
}

TEST_F(TypePairs, Optimizers) {
  for (const DType type : dtypes())
    for (std::size_t k = 0; k < keep_count; ++k) {
      const auto keep = static_cast<WeightStorage>(k);
      const Weights weights{.keep = keep, .values = a.at(), .copy = b.at(), .rest = c.at()};
      const bool works = type == DType::f32 || type == DType::bf16;
      const Moments moments{DType::f32, d.at(), e.at()};
      expect(works, type, "adamw", [&] { adamw(weights, {type, f.at()}, moments, n, {}); });
      expect(works, type, "adamw", [&] { adamw(weights, {DType::f32, f.at()}, {type, d.at(), e.at()}, n, {}); });
      expect(works, type, "sgd", [&] { sgd(weights, {type, f.at()}, DType::f32, d.at(), n, {}); });
      expect(works, type, "sgd", [&] { sgd(weights, {DType::f32, f.at()}, type, d.at(), n, {}); });
      expect(works, type, "lamb", [&] { lamb(weights, {type, f.at()}, moments, n, {}); });
      expect(type == DType::f32, type, "lamb", [&] {
        lamb(weights, {DType::f32, f.at()}, {type, d.at(), e.at()}, n, {});
      });
    }
}

}  // namespace
}  // namespace trellis::kernels
