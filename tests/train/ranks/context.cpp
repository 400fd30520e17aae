// Context parallelism: training with positions of sequences shared out among ranks equals training on one rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/folder.h"
#include "tests/train/ranks/runs.h"
#include "tests/why.h"
#include "train/checkpoint/save_load.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"
#include "train/whole/traffic.h"

namespace trellis::train {
namespace {

struct Layout {
  Rank context = 2, tensor = 1, pipeline = 1, data = 1;
  bool ring = true, zero = false, sequence = false;
  Recompute recompute = Recompute::none;
  Rank ranks() const { return context * tensor * pipeline * data; }
};

StepConfig laid_out(StepConfig c, const Layout& l) {
  c.strategy = {.tensor = l.tensor,
                .pipeline = l.pipeline,
                .context = l.context,
                .sequence_parallel = l.sequence,
                .zero1 = l.zero,
                .ring_attention = l.ring};
  c.recompute = l.recompute;
  c.global_batch_size = 2 * c.micro_batch_size * static_cast<std::size_t>(l.data);
  return c;
}

void expect_same(const StepConfig& c, const Layout& l, const std::string& what, const RunOptions& o = {.steps = 4}) {
  const StepConfig many = laid_out(c, l);
  StepConfig one = many;
  one.strategy = {}, one.recompute = Recompute::none;
  const Trained a = train_threads(many, l.ranks(), o), b = train_threads(one, 1, o);
  ASSERT_EQ(a.fault + b.fault, "") << what;
  EXPECT_EQ(a.differing, "") << what;
  for (std::size_t i = 0; i < b.losses.size(); ++i) {
    EXPECT_NEAR(a.losses[i] / b.losses[i], 1, 1e-5) << what << ", step " << i;
    EXPECT_NEAR(a.norms[i] / b.norms[i], 1, 1e-4) << what << ", step " << i;
  }
  const auto [apart, which] = distance(b.parameters, a.parameters);
  EXPECT_LT(apart, 1e-5) << what << ": " << which;
}

// Checks the layout with keys that go round a ring, and with gathered keys.
void expect_same_both_ways(const StepConfig& c, Layout l, const std::string& what, const RunOptions& o = {.steps = 4}) {
  for (const bool ring : {true, false}) {
    l.ring = ring;
    expect_same(c, l, fmt::format("{}, {}", what, ring ? "ring" : "gathered"), o);
  }
}

TEST(Context, OddNumbersOfRanks) {
  StepConfig c = small_llama();
  c.seq_length = 18;
  expect_same_both_ways(c, {.context = 3, .zero = true}, "C3");
}

TEST(Context, AWindowOfMistrals) {
  StepConfig c = small_llama();
  for (const std::size_t window : {1, 3, 6, 15}) {
    c.model.sliding_window = window;
    expect_same_both_ways(c, {.context = 4}, fmt::format("window {}", window));
  }
}

TEST(Context, DocumentsThatAreCut) {
  StepConfig c = small_llama();
  c.cut_attention = true, c.micro_batch_size = 2;
  expect_same_both_ways(c, {.context = 4, .recompute = Recompute::selective}, "documents");
}

TEST(Context, HeadsOfKeysThatTensorRanksCopy) {
  StepConfig c = small_llama();
  c.model.num_key_value_heads = 1, c.model.qk_norm = c.model.qkv_bias = true;
  expect_same_both_ways(c, {.context = 2, .tensor = 2, .sequence = true}, "copies of keys");
}

// Labels that do not count lie unevenly among the ranks.
TEST(Context, DropoutSmoothingAndIgnoredLabels) {
  StepConfig c = small_llama();
  c.model.hidden_dropout = c.model.attention_dropout = 0.2, c.model.label_smoothing = 0.1;
  c.micro_batch_size = 2;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
    expect_same_both_ways(
        c, {.context = 2, .tensor = 2, .data = 2, .zero = true, .sequence = true, .recompute = recompute},
        std::string(name(recompute)), {.steps = 4, .ignored_every = 3});
}

TEST(Context, OtherModelsAndRules) {
  StepConfig c = small_llama();
  c.model.num_key_value_heads = 4, c.model.rotary_percentage = 0.5;
  for (const char* model : {"gpt_neox", "gpt3"}) {
    c.model.architecture = model, c.model.tie_word_embeddings = std::string(model) == "gpt3";
    expect_same_both_ways(c, {.context = 2, .tensor = 2, .pipeline = 2, .sequence = true}, model);
  }
  for (const char* rule : {"lamb", "sgd"}) {
    StepConfig other = small_llama();
    other.optimizer.name = rule;
    expect_same(other, {.context = 2, .data = 2, .zero = true}, rule);
  }
  StepConfig adapters = small_llama();
  adapters.lora = {.rank = 4, .alpha = 8, .targets = {"q_proj", "v_proj", "down_proj"}};
  expect_same(adapters, {.context = 2, .data = 2, .zero = true}, "adapters");
}

// Experts are shared out over data and context together; the load-balancing loss is that of whole sequences.
TEST(Context, Experts) {
  StepConfig c = small_llama();
  c.model.architecture = "mixtral", c.model.intermediate_size = 24;
  c.experts = {.experts = 4, .top_k = 2, .balance = 0.1};
  expect_same_both_ways(c, {.context = 2}, "experts");
  for (const bool zero : {false, true})
    for (const Rank expert : {2, 4}) {
      StepConfig many = laid_out(c, {.context = 2, .data = 2, .zero = zero});
      StepConfig one = many;
      many.strategy.expert = expert, one.strategy = {};
      const Trained a = train_threads(many, 4, {.steps = 4}), b = train_threads(one, 1, {.steps = 4});
      ASSERT_EQ(a.fault + b.fault, "");
      EXPECT_EQ(a.differing, "");
      EXPECT_LT(distance(b.parameters, a.parameters).first, 1e-5) << "E" << expert;
    }
}

TEST(Context, TheRingsResultsAreThoseOfGatheredKeysToTheBit) {
  std::vector<double> losses[2];
  for (const bool ring : {true, false}) {
    const Trained t = train_threads(laid_out(small_llama(), {.context = 4, .ring = ring}), 4, {.steps = 1});
    ASSERT_EQ(t.fault, "");
    losses[ring ? 0 : 1] = t.losses;
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(Context, NarrowTypesKeepReplicasEqual) {
  for (const Precision p : {Precision::bf16_sr, Precision::mixed, Precision::autocast}) {
    StepConfig c = small_llama();
    c.precision = p;
    const StepConfig many = laid_out(c, {.context = 2, .tensor = 2, .data = 2, .zero = true, .sequence = true});
    StepConfig one = many;
    one.strategy = {};
    const Trained a = train_threads(many, 8), b = train_threads(one, 1);
    ASSERT_EQ(a.fault + b.fault, "") << name(p);
    EXPECT_EQ(a.differing, "") << name(p);
    for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i] / b.losses[i], 1, 0.02) << name(p);
  }
}

// In a ring of C ranks, a rank sends keys and values C - 1 times in each pass, and gradients of keys and values, in
// f32, C times. If they are gathered, it sends its own to C - 1 others in each pass, and to each of these that rank's
// part of the gradients.
TEST(Context, WhatARankSendsIsProvedAndCounted) {
  for (const bool ring : {true, false}) {
    const Layout l{.context = 4, .data = 2, .ring = ring, .zero = true};
    StepConfig c = laid_out(small_llama(), l);
    c.precision = Precision::bf16;
    const std::vector<RankStep> classes = classes_of(c, l.ranks());
    ASSERT_EQ(check_step(c, l.ranks(), classes, graph_of(classes)), "");
    double sent = 0;
    for (const Operation& o : classes[0].program.operations)
      if (o.kind == Operation::Kind::exchange && o.exchange.axis == Axis::context) sent += bytes_sent(classes[0], o);
    const double keys = 4 * 2 * 8;  // positions of a rank, heads, elements
    const double once = 2 * keys * (3 * 2 + 3 * 2 + (ring ? 4 : 3) * 4);
    EXPECT_EQ(sent, 4 * 2 * once) << "of 4 layers and 2 micro-batches";
  }
}

TEST(Context, ACheckpointIsThatOfAnyLayout) {
  const Folder folder;
  const auto steps = [](Job& job, std::size_t from, std::size_t to) {
    for (std::size_t s = from; s < to; ++s) {
      set_batches(job, s);
      job.run({.step = static_cast<std::int64_t>(s + 1), .learning_rate = 1e-2});
    }
  };
  StepConfig c = laid_out(small_llama(), {.context = 4, .zero = true}), one = c;
  one.strategy = {};
  expect_on_threads(4, [&](ccl::Communicator& world) {
    Job job(c, world);
    CheckpointSaver checkpoints(folder.path(), world, {});
    steps(job, 0, 2);
    checkpoints.save(job, 2);
    checkpoints.wait();
  });
  const Trained whole = train_threads(one, 1, {.steps = 3});
  expect_on_threads(1, [&](ccl::Communicator& world) {
    Job job(one, world);
    load(job, CheckpointReader(folder.path() / tag_name(2)), true);
    steps(job, 2, 3);
    for (const Parameter& p : job.parameters().all()) {
      const std::vector<float> got = job.values(p), &expected = whole.parameters.at(p.name);
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << p.name;
    }
  });
}

TEST(Context, WhatItCannotBeIsRefusedByName) {
  const StepConfig c = small_llama();
  const auto complaint = [&](const std::function<void(StepConfig&)>& change, Rank world = 4) {
    StepConfig other = c;
    other.strategy.context = 4;
    change(other);
    return why([&] { lay_out(other, world, 0); });
  };
  EXPECT_EQ(
      complaint([](StepConfig& o) { o.seq_length = 12; }),
      "data.seq_length is 12: expected a multiple of 2 x context_parallel_size, 2 x 4: each rank has a stretch from "
      "the front and one from the back");
  EXPECT_EQ(complaint([](StepConfig& o) { o.strategy.tensor = 2; }, 12),
            "12 ranks: expected a multiple of tensor x pipeline x context parallel sizes, 2 x 1 x 4");
  EXPECT_EQ(complaint(
                [](StepConfig& o) {
                  o.strategy.tensor = 8, o.strategy.sequence_parallel = true,
                  o.model.num_attention_heads = o.model.num_key_value_heads = 8;
                },
                32),
            "data.seq_length / context_parallel_size is 4: expected a multiple of tensor_model_parallel_size 8");
  EXPECT_NE(complaint([](StepConfig& o) {
              o.model.architecture = "bert", o.model.num_key_value_heads = 4, o.model.tie_word_embeddings = true;
            }).find("distributed_strategy.context_parallel_size is 4: expected 1 for bert"),
            std::string::npos);
  EXPECT_NE(complaint([](StepConfig& o) {
              o.model.architecture = "mixtral";
              o.experts = {.experts = 4, .top_k = 2, .capacity_factor = 1.5};
            }).find("context_parallel_size is 4: expected 1 with model.moe.capacity_factor 1.5"),
            std::string::npos);
}

}  // namespace
}  // namespace trellis::train
