// A step's result does not depend on the layout: losses, norms and parameters of every layout against those of one
// rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tests/train/ranks/runs.h"
#include "tests/why.h"
#include "train/models/model_interface.h"
#include "train/whole/rank_step.h"

namespace trellis::train {
namespace {

struct Layout {
  Rank tensor = 1, pipeline = 1, chunks = 1, data = 1;
  bool sequence = false, zero = false;
  Recompute recompute = Recompute::none;
  std::size_t accumulated = 2;  // micro-batches of a data-parallel rank, at least
  std::string schedule = "";
  Rank context = 1;
  bool ring = true;
  Rank ranks() const { return tensor * pipeline * data * context; }
};

std::string words(const Layout& l) {
  return fmt::format("T{} P{} V{} D{}{}{}{} {} M{} {}", l.tensor, l.pipeline, l.chunks, l.data,
                     l.context == 1 ? "" : fmt::format(" C{} {}", l.context, l.ring ? "ring" : "gathered"),
                     l.sequence ? " SP" : "", l.zero ? " ZeRO" : "", name(l.recompute), l.accumulated, l.schedule);
}

StepConfig laid_out(StepConfig c, const Layout& l) {
  c.strategy.tensor = l.tensor, c.strategy.pipeline = l.pipeline, c.strategy.virtual_pipeline = l.chunks;
  c.strategy.sequence_parallel = l.sequence, c.strategy.zero1 = l.zero, c.strategy.schedule = l.schedule;
  c.strategy.context = l.context, c.strategy.ring_attention = l.ring;
  c.recompute = l.recompute;
  c.global_batch_size = l.accumulated * static_cast<std::size_t>(l.data);
  return c;
}

// The configuration for one rank with the same micro-batches.
StepConfig alone(StepConfig c) {
  c.strategy = {}, c.wiring = Wiring::plain;
  c.recompute = Recompute::none;
  return c;
}

void expect_same(const StepConfig& c, Rank world, const std::string& what, double tolerance = 1e-5,
                 const RunOptions& o = {}) {
  const Trained many = train_threads(c, world, o), one = train_threads(alone(c), 1, o);
  ASSERT_EQ(many.fault, "") << what;
  ASSERT_EQ(one.fault, "") << what;
  EXPECT_EQ(many.differing, "") << what << ": a parameter differs between ranks that hold it";
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i] / one.losses[i], 1, tolerance) << what << ", step " << i;
    EXPECT_NEAR(many.norms[i] / one.norms[i], 1, 10 * tolerance) << what << ", step " << i;
  }
  const auto [apart, which] = distance(one.parameters, many.parameters);
  EXPECT_LT(apart, tolerance) << what << ": " << which;
}

// Layouts such that each pair of values of two settings is in one of them.
std::vector<Layout> pairwise() {
  using enum Recompute;
  return {
      {1, 1, 1, 1, false, false, full, 4},
      {2, 1, 1, 1, true, false, none, 2},
      {4, 1, 1, 1, true, true, selective, 1},
      {1, 2, 1, 1, false, true, selective, 4},
      {1, 4, 1, 1, false, false, none, 4},
      {1, 2, 2, 2, false, true, full, 4},
      {2, 2, 2, 2, true, true, none, 2},
      {2, 2, 1, 4, false, false, selective, 2},
      {4, 2, 1, 2, true, true, full, 4},
      {4, 1, 1, 4, false, true, none, 2},
      {1, 1, 1, 4, false, false, selective, 1},
      {1, 1, 1, 2, false, true, none, 4},
      {2, 4, 1, 2, true, false, full, 4},
      {4, 2, 2, 1, false, false, full, 2},
      {2, 1, 1, 2, false, true, full, 1},
      {1, 4, 1, 4, false, true, none, 4},
      {2, 4, 1, 1, false, true, selective, 8},
      {4, 4, 1, 1, true, false, none, 4},
      {1, 2, 1, 2, false, false, none, 4, "gpipe"},
      {2, 2, 1, 2, true, true, full, 4, "zb-h1"},
      {1, 4, 1, 2, false, true, selective, 4, "zb-h1"},
      {2, 2, 2, 2, true, true, none, 4, "zb-v"},
      {1, 2, 2, 1, false, false, full, 4, "zb-v"},
      {2, 2, 2, 4, true, false, selective, 2},
      {1, 1, 1, 4, false, false, full, 1},
      {1, 1, 1, 4, false, false, none, 2, "", 2},
      {2, 1, 1, 2, true, true, full, 2, "", 2},
      {4, 2, 1, 1, true, false, selective, 4, "", 2, false},
      {1, 4, 1, 2, false, true, none, 4, "", 2, false},
      {2, 2, 2, 1, false, false, full, 4, "", 2},
      {1, 1, 1, 4, false, true, full, 1, "", 4},
      {2, 2, 1, 1, true, false, none, 4, "zb-h1", 4},
      {4, 1, 1, 1, true, true, selective, 2, "", 4},
      {1, 4, 1, 1, false, false, full, 4, "", 4, false},
      {1, 2, 2, 2, false, true, none, 4, "", 4, false},
  };
}

// A layout's settings as numbers; possible(): whether 4 layers on 16 ranks can have that layout.
using Chosen = std::array<int, 8>;
Chosen values_of(const Layout& l) {
  return {l.tensor, l.pipeline, l.chunks, l.data, l.sequence, l.zero, static_cast<int>(l.recompute), l.context};
}
bool possible(const Chosen& v) {
  return v[0] * v[1] * v[3] * v[7] <= 16 && (v[2] == 1 || v[1] == 2) && (v[4] == 0 || v[0] > 1);
}
using Pairs = std::set<std::array<int, 4>>;
void add_pairs(Pairs& pairs, const Chosen& v) {
  for (int i = 0; i < 8; ++i)
    for (int j = i + 1; j < 8; ++j)
      pairs.insert({i, v[static_cast<std::size_t>(i)], j, v[static_cast<std::size_t>(j)]});
}

TEST(Matrix, LayoutsCoverEveryPairOfValues) {
  Pairs all, covered;
  for (int t : {1, 2, 4})
    for (int p : {1, 2, 4})
      for (int d : {1, 2, 4})
        for (int c : {1, 2, 4})
          for (int rest = 0; rest < 24; ++rest)
            if (const Chosen v{t, p, 1 + rest / 12, d, rest / 6 % 2, rest / 3 % 2, rest % 3, c}; possible(v))
              add_pairs(all, v);
  for (const Layout& l : pairwise()) {
    EXPECT_TRUE(possible(values_of(l))) << words(l);
    add_pairs(covered, values_of(l));
  }
  EXPECT_EQ(covered, all);
}

TEST(Matrix, EveryLayoutTrainsAsOneRank) {
  for (const Layout& l : pairwise()) expect_same(laid_out(small_llama(), l), l.ranks(), words(l), 1e-5, {.steps = 4});
}

// The same with a context axis of 2 or 4 ranks.
TEST(Soak, DISABLED_ContextOnEveryLayout) {
  int done = 0;
  for (Rank tensor : {1, 2, 4})
    for (Rank pipeline : {1, 2, 4})
      for (Rank data : {1, 2, 4})
        for (Rank context : {2, 4})
          for (int bits = 0; bits < 24; ++bits) {
            const Layout l{.tensor = tensor,
                           .pipeline = pipeline,
                           .chunks = pipeline == 2 && (bits & 4) != 0 ? 2 : 1,
                           .data = data,
                           .sequence = (bits & 1) != 0,
                           .zero = (bits & 2) != 0,
                           .recompute = static_cast<Recompute>(bits / 8),
                           .accumulated = 4,
                           .context = context,
                           .ring = (bits & 4) == 0};
            if (l.ranks() > 16 || (l.sequence && tensor == 1)) continue;
            expect_same(laid_out(small_llama(), l), l.ranks(), words(l), 1e-5, {.steps = 4});
            ++done;
          }
  EXPECT_GT(done, 300);
}

// Every combination on up to 16 ranks; tools/soak train runs it.
TEST(Soak, DISABLED_TheWholeMatrix) {
  std::map<std::size_t, Trained> alone_by_batch;
  int done = 0;
  for (Rank tensor : {1, 2, 4})
    for (Rank pipeline : {1, 2, 4})
      for (Rank chunks : {1, 2})
        for (Rank data : {1, 2, 4})
          for (int bits = 0; bits < 24; ++bits) {
            Layout l{tensor,
                     pipeline,
                     chunks,
                     data,
                     (bits & 1) != 0,
                     (bits & 2) != 0,
                     static_cast<Recompute>(bits / 8),
                     (bits & 4) != 0 ? 8U : 4U};
            const Rank world = tensor * pipeline * data;
            if (world > 16 || (chunks > 1 && pipeline != 2) || (l.sequence && tensor == 1)) continue;
            const StepConfig c = laid_out(small_llama(), l);
            Trained& one = alone_by_batch[c.global_batch_size];
            if (one.losses.empty()) one = train_threads(alone(c), 1);
            const Trained many = train_threads(c, world);
            ASSERT_EQ(many.fault, "") << words(l);
            EXPECT_EQ(many.differing, "") << words(l);
            for (std::size_t i = 0; i < one.losses.size(); ++i)
              EXPECT_NEAR(many.losses[i] / one.losses[i], 1, 1e-5) << words(l);
            EXPECT_LT(distance(one.parameters, many.parameters).first, 1e-5) << words(l);
            ++done;
          }
  EXPECT_GT(done, 300);
}

// Ranks have unequal numbers of heads; heads of keys are copied where there are fewer than ranks.
TEST(Matrix, HeadsThatRanksDoNotDivide) {
  StepConfig c = small_llama();
  for (const auto& [heads, kv] : {std::pair<std::size_t, std::size_t>{6, 6}, {6, 2}, {6, 1}, {5, 5}}) {
    c.model.num_attention_heads = heads, c.model.num_key_value_heads = kv, c.model.hidden_size = 8 * heads;
    for (const Layout& l : {Layout{.tensor = 4, .sequence = true, .zero = true},
                            Layout{.tensor = 4, .pipeline = 2, .data = 2, .zero = true, .accumulated = 2}})
      expect_same(laid_out(c, l), l.ranks(), fmt::format("{} heads, {} of keys, {}", heads, kv, words(l)), 1e-5,
                  {.steps = 4});
  }
}

// On trn1, the four ranks of a tensor group are eight apart, and those with copies of the same heads of keys are two
// places apart in the group.
TEST(Matrix, CopiesOfHeadsOnTrn1) {
  StepConfig c = laid_out(small_llama(), {.tensor = 4, .data = 8, .zero = true, .accumulated = 1});
  c.model.num_attention_heads = 4, c.model.num_key_value_heads = 2, c.wiring = Wiring::trn1;
  expect_same(c, 32, "trn1", 1e-5, {.steps = 2});
}

TEST(Matrix, TiedWeightsOnEveryPipeline) {
  StepConfig c = small_llama();
  c.model.tie_word_embeddings = true;
  for (const Layout& l : {Layout{.accumulated = 4}, Layout{.pipeline = 2, .data = 2, .zero = true, .accumulated = 4},
                          Layout{.tensor = 2, .pipeline = 4, .sequence = true, .accumulated = 4},
                          Layout{.pipeline = 2, .chunks = 2, .accumulated = 4, .schedule = "zb-v"}})
    expect_same(laid_out(c, l), l.ranks(), "tied " + words(l));
}

TEST(Matrix, OtherModelsToo) {
  for (const char* model : {"gpt_neox", "gpt3"}) {
    StepConfig c = small_llama();
    c.model.architecture = model, c.model.num_key_value_heads = 4, c.model.rotary_percentage = 0.5;
    c.model.tie_word_embeddings = std::string(model) == "gpt3";
    for (const Layout& l : {Layout{.tensor = 2, .data = 2, .sequence = true, .zero = true},
                            Layout{.tensor = 2, .pipeline = 2, .accumulated = 4}})
      expect_same(laid_out(c, l), l.ranks(), fmt::format("{} {}", model, words(l)));
  }
}

TEST(Matrix, BertOnEveryLayout) {
  StepConfig c = small_llama();
  c.model.architecture = "bert", c.model.num_key_value_heads = 4, c.model.tie_word_embeddings = true;
  c.model.attention_dropout = 0.2, c.model.hidden_dropout = 0.1;
  for (const Layout& l : {Layout{.tensor = 2, .data = 2, .sequence = true, .zero = true},
                          Layout{.tensor = 2, .pipeline = 2, .recompute = Recompute::full, .accumulated = 4},
                          Layout{.pipeline = 2, .chunks = 2, .accumulated = 4, .schedule = "zb-v"}})
    expect_same(laid_out(c, l), l.ranks(), "bert " + words(l), 1e-5, {.ignored_every = 3});
}

// Products in bf16: sums differ by layout and from f32's, but not by much, and replicas stay equal.
TEST(Matrix, AutocastStaysCloseToF32) {
  StepConfig c = small_llama(), wide = c;
  c.precision = Precision::autocast;
  const Layout l{
      .tensor = 2, .pipeline = 2, .data = 2, .sequence = true, .zero = true, .recompute = Recompute::selective};
  const Trained many = train_threads(laid_out(c, l), 8), one = train_threads(alone(laid_out(c, l)), 1),
                full = train_threads(alone(laid_out(wide, l)), 1);
  ASSERT_EQ(many.fault + one.fault + full.fault, "");
  EXPECT_EQ(many.differing, "");
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i] / one.losses[i], 1, 0.01);
    EXPECT_NEAR(one.losses[i] / full.losses[i], 1, 0.02);
    EXPECT_NE(one.losses[i], full.losses[i]) << "nothing was narrow";
  }
}

TEST(Matrix, AdaptersTrainAloneOnEveryLayout) {
  StepConfig c = small_llama();
  c.lora = {
      .rank = 4, .alpha = 8, .targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}};
  for (const Layout& l : {Layout{.tensor = 4, .data = 2, .zero = true},
                          Layout{.tensor = 2, .pipeline = 2, .sequence = true, .accumulated = 4},
                          Layout{.pipeline = 2, .chunks = 2, .accumulated = 4, .schedule = "zb-v"}})
    expect_same(laid_out(c, l), l.ranks(), "LoRA " + words(l));
  const Trained before = train_threads(c, 1, {.steps = 0}), after = train_threads(c, 1, {.steps = 10});
  for (const auto& [name, values] : before.parameters)
    EXPECT_EQ(values == after.parameters.at(name), name.find(".lora_") == name.npos) << name;
  EXPECT_LT(after.losses.back(), after.losses.front());
}

TEST(Matrix, AdaptersThatFitNothingAreRefusedWithWhatThereIs) {
  StepConfig c = small_llama();
  const auto complaint = [&](std::vector<std::string> targets) {
    c.lora = {.rank = 4, .alpha = 8, .targets = std::move(targets)};
    return why([&] { lay_out(c, 1, 0); });
  };
  const std::string names = "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, the projections of llama";
  EXPECT_EQ(complaint({"q_proj", "query_key_value"}),
            "model_alignment_strategy.peft.target_modules has 'query_key_value': expected some of " + names);
  EXPECT_EQ(complaint({}), "model_alignment_strategy.peft.target_modules is empty: expected some of " + names);
  for (const auto& [name, model] : models()) {
    c.model.architecture = name;
    c.experts.experts = model.experts ? 2 : 0;
    EXPECT_NE(complaint({"nothing"}).find("the projections of " + name), std::string::npos);
  }
}

TEST(Matrix, DropoutAndSmoothingAndIgnoredLabelsDoNotDependOnTheLayout) {
  StepConfig c = small_llama();
  c.model.hidden_dropout = c.model.attention_dropout = 0.2, c.model.label_smoothing = 0.1;
  c.micro_batch_size = 2;
  Layout l{.tensor = 2, .pipeline = 2, .data = 2, .sequence = true, .zero = true, .recompute = Recompute::full};
  c = laid_out(c, l);
  c.global_batch_size *= 2;
  expect_same(c, 8, "dropout " + words(l), 1e-5, {.ignored_every = 5});
}

TEST(Matrix, OtherNormsClipAlike) {
  for (double p : {1.0, 3.0, std::numeric_limits<double>::infinity()}) {
    StepConfig c = small_llama();
    c.optimizer.norm_type = p, c.optimizer.max_norm = 0.01;
    const Layout l{.tensor = 2, .pipeline = 2, .data = 2, .sequence = true, .zero = true};
    expect_same(laid_out(c, l), 8, fmt::format("p = {}", p));
  }
}

// In bf16 sums differ by layout. Still, replicas stay equal to the bit, and the loss stays close.
TEST(Matrix, NarrowTypesKeepReplicasEqual) {
  for (Precision p : {Precision::bf16_sr, Precision::bf16, Precision::mixed}) {
    StepConfig c = small_llama();
    c.precision = p;
    for (const Layout& l : {Layout{.tensor = 2, .pipeline = 2, .data = 2, .sequence = true, .zero = true},
                            Layout{.tensor = 4, .data = 2, .zero = false}}) {
      const std::string what = fmt::format("{} {}", name(p), words(l));
      const StepConfig many = laid_out(c, l);
      const Trained a = train_threads(many, l.ranks()), b = train_threads(alone(many), 1);
      ASSERT_EQ(a.fault + b.fault, "") << what;
      EXPECT_EQ(a.differing, "") << what;
      for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i] / b.losses[i], 1, 0.02) << what;
    }
  }
}

// Stochastic rounding depends on the parameter's element, not on the layout: where sums are the same, so are all bits.
TEST(Matrix, StochasticRoundingDoesNotKnowTheLayout) {
  StepConfig c = small_llama();
  c.precision = Precision::bf16_sr;
  c.optimizer.clip = false;  // the norm is a sum, whose order follows the layout
  const Trained one = train_threads(laid_out(c, {.accumulated = 4}), 1);
  for (const Layout& l :
       {Layout{.pipeline = 2, .accumulated = 4}, Layout{.pipeline = 2, .accumulated = 4, .schedule = "zb-h1"},
        Layout{.pipeline = 4, .accumulated = 4, .schedule = "1f1b"}}) {
    const Trained many = train_threads(laid_out(c, l), l.pipeline);
    ASSERT_EQ(one.fault + many.fault, "");
    EXPECT_EQ(many.losses, one.losses) << words(l);
    EXPECT_EQ(many.parameters, one.parameters) << words(l);
  }
  StepConfig zero = laid_out(c, {.data = 2, .accumulated = 2}), plain = zero;
  zero.strategy.zero1 = true;
  const Trained a = train_threads(zero, 2), b = train_threads(plain, 2);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.parameters, b.parameters);
}

}  // namespace
}  // namespace trellis::train
