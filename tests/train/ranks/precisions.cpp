// Every precision with every model and with adapters: both factors of a product have one type, and training works.
#include <gtest/gtest.h>

#include "tests/train/ranks/runs.h"
#include "tests/why.h"
#include "train/models/model_interface.h"
#include "train/whole/rank_step.h"

namespace trellis::train {
namespace {

// The projections that the model's layers have: those to which adapters can be added in f32.
std::vector<std::string> projections(StepConfig c) {
  std::vector<std::string> all;
  c.precision = Precision::fp32;
  for (const char* word : {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
                           "query_key_value", "dense", "query", "key", "value"}) {
    c.lora = {.rank = 4, .alpha = 8, .targets = {word}};
    if (why([&] { lay_out(c, 1, 0); }).empty()) all.emplace_back(word);
  }
  return all;
}

TEST(Precisions, FactorsHaveOneTypeInEveryModel) {
  for (const auto& [architecture, model] : models())
    for (int p = 0; p <= static_cast<int>(Precision::mxfp8); ++p)
      for (const bool adapted : {false, true}) {
        StepConfig c = small_llama();
        c.model.architecture = architecture, c.model.num_key_value_heads = 4, c.seq_length = 32;
        c.experts.experts = model.experts ? 2 : 0;
        c.precision = static_cast<Precision>(p);
        if (adapted) c.lora = {.rank = 4, .alpha = 8, .targets = projections(c)};
        EXPECT_EQ(why<std::exception>([&] { lay_out(c, 1, 0); }), "") << architecture << ' ' << name(c.precision);
      }
}

// Where products are narrower than the parameters, adapters' factors are narrowed as the weights are.
TEST(Precisions, AdaptersTrainInEachOne) {
  StepConfig c = small_llama();
  c.seq_length = 32;
  c.lora = {.rank = 4, .alpha = 8, .targets = projections(c)};
  const Trained wide = train_threads(c, 1);
  for (Precision p : {Precision::mixed, Precision::autocast, Precision::fp8, Precision::mxfp8}) {
    c.precision = p;
    StepConfig cut = c;
    cut.strategy = {.tensor = 2, .pipeline = 2, .sequence_parallel = true, .zero1 = true};
    const Trained one = train_threads(c, 1), many = train_threads(cut, 4);
    ASSERT_EQ(one.fault + many.fault, "") << name(p);
    EXPECT_EQ(many.differing, "") << name(p);
    EXPECT_LT(one.losses.back(), one.losses.front()) << name(p);
    for (std::size_t i = 0; i < wide.losses.size(); ++i) {
      EXPECT_NEAR(one.losses[i] / wide.losses[i], 1, 0.02) << name(p) << ", step " << i;
      EXPECT_NEAR(many.losses[i] / one.losses[i], 1, 0.01) << name(p) << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace trellis::train
