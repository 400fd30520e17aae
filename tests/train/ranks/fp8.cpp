// Products of factors rounded to 8 bits: the rounding is PyTorch's, and training stays near that in bf16.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/types/convert.h"
#include "tests/train/ranks/runs.h"
#include "train/layers/fp8/quantize.h"
#include "train/step/run.h"

namespace trellis::train {
namespace {

constexpr std::size_t rows = 5, columns = 72;

std::vector<float> rounded(const std::vector<float>& values, const Fp8QuantizeOptions& f) {
  Writer w({}, {});
  const TensorId in = w.tensor("in", DType::f32, f.rows, f.columns, Category::input);
  const TensorId out = quantized(w, "factor", in, f);
  const TensorId kept = w.tensor("kept", DType::bf16, f.rows, f.columns, Category::input);
  w.compute("keep", {out}, {kept}, 0, {.kind = "copy"}, [=, n = values.size()](const Memory& at, const StepInputs&) {
    std::copy_n(at.as<std::uint16_t>(out), n, at.as<std::uint16_t>(kept));
  });
  const StepProgram program = w.finish();
  Runner runner(program, {});
  std::ranges::copy(values, runner.as<float>(in));
  runner.run({});
  std::vector<float> result;
  for (std::size_t i = 0; i < values.size(); ++i)
    result.push_back(kernels::widen_bf16(runner.as<std::uint16_t>(kept)[i]));
  return result;
}

TEST(Fp8, FactorsAreRoundedAsPyTorchRoundsThem) {
  std::ifstream in(std::string(TRELLIS_SOURCE_DIR) + "/tests/oracles/fp8_torch.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  const auto matrix = golden["matrix"].get<std::vector<float>>();
  ASSERT_EQ(matrix.size(), rows * columns);
  for (const auto& [format, word] : {std::pair{Fp8Format::e4m3, "e4m3"}, {Fp8Format::e5m2, "e5m2"}}) {
    Fp8QuantizeOptions f{.rows = rows, .columns = columns, .format = format};
    EXPECT_EQ(rounded(matrix, f), golden[fmt::format("tensor_{}", word)].get<std::vector<float>>()) << word;
    f.scaling = Fp8Scaling::mx;
    EXPECT_EQ(rounded(matrix, f), golden[fmt::format("mx_{}", word)].get<std::vector<float>>()) << word;
    f.along_rows = true;
    EXPECT_EQ(rounded(matrix, f), golden[fmt::format("mx_rows_{}", word)].get<std::vector<float>>()) << word;
  }
}

TEST(Fp8, ZerosStayAndWhatIsNoNumberIsSeen) {
  const Fp8QuantizeOptions f{.rows = 1, .columns = 4};
  EXPECT_EQ(rounded({0, 0, 0, 0}, f), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_TRUE(std::isnan(rounded({1, NAN, 2, 3}, f)[0]));
  EXPECT_TRUE(std::isnan(rounded({1, INFINITY, 2, 3}, f)[0]));
}

StepConfig small(Precision p) {
  StepConfig c = small_llama();
  c.precision = p;
  c.seq_length = 32;
  return c;
}

TEST(Fp8, TrainingStaysNearThatInBf16) {
  const Trained wide = train_threads(small(Precision::autocast), 1, {.steps = 12});
  for (Precision p : {Precision::fp8, Precision::mxfp8}) {
    const Trained narrow = train_threads(small(p), 1, {.steps = 12});
    ASSERT_EQ(wide.fault + narrow.fault, "") << name(p);
    for (std::size_t i = 0; i < wide.losses.size(); ++i) EXPECT_NEAR(narrow.losses[i] / wide.losses[i], 1, 0.02) << i;
    EXPECT_NE(narrow.losses.front(), wide.losses.front()) << name(p) << ": nothing was rounded";
  }
}

TEST(Fp8, LayoutsAgreeAndReplicasAreEqual) {
  for (Precision p : {Precision::fp8, Precision::mxfp8}) {
    StepConfig many = small(p);
    many.strategy = {.tensor = 2, .pipeline = 2, .sequence_parallel = true, .zero1 = true};
    StepConfig one = many;
    one.strategy = {};
    const Trained a = train_threads(many, 8, {.steps = 4}), b = train_threads(one, 1, {.steps = 4});
    ASSERT_EQ(a.fault + b.fault, "") << name(p);
    EXPECT_EQ(a.differing, "") << name(p);
    for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i] / b.losses[i], 1, 0.01) << name(p);
  }
}

}  // namespace
}  // namespace trellis::train
