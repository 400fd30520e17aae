// Runs that resume from a checkpoint: with the same configuration and data, from a complete one, in another layout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/folder.h"
#include "tests/train/ranks/runs.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/shard.h"
#include "train/trainer/load_together.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;

fs::path run_of(const JobConfig& c) { return fs::path(c.experiment.directory) / c.step.name; }

void damage(const fs::path& tag) {
  for (const auto& each : fs::directory_iterator(tag)) {
    if (each.path().extension() != ".safetensors") continue;
    std::fstream file(each.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-100, std::ios::end);
    file.put('\x55');
    return;
  }
}

struct Change {
  std::string words;  // of the refusal
  std::function<void(JobConfig&)> apply;
};

TEST(Resumed, WhatMayNotChangeIsRefusedByNameWithBothValues) {
  const Folder folder;
  JobConfig c = run_in(folder);
  ASSERT_EQ(train_in(c).fault, "");
  const std::string other = folder.put("other.txt", std::string(500, '\x05'));
  const Change all[] = {
      {"model.num_layers is 1, was 2", [](JobConfig& j) { j.step.model.num_layers = 1; }},
      {"model.rope_theta is 500, was 10000", [](JobConfig& j) { j.step.model.rope_theta = 500; }},
      {"model.tie_word_embeddings is true, was false", [](JobConfig& j) { j.step.model.tie_word_embeddings = true; }},
      {"seed is 99, was 1234", [](JobConfig& j) { j.step.seed = 99; }},
      {"data.seq_length is 8, was 16", [](JobConfig& j) { j.step.seq_length = 8; }},
      {"data.global_batch_size is 4, was 2", [](JobConfig& j) { j.step.global_batch_size = 4; }},
      {"model.optim.name is lamb, was adamw", [](JobConfig& j) { j.step.optimizer.name = "lamb"; }},
      {"model.optim.name is sgd, was adamw", [](JobConfig& j) { j.step.optimizer.name = "sgd"; }},
      {"other.txt (500 bytes), was ", [&](JobConfig& j) { j.data.train_path = {other}; }}};
  c.experiment.resume = true, c.trainer.max_steps = 12;
  for (const Change& change : all) {
    JobConfig changed = c;
    change.apply(changed);
    const Trial refused = train_in(changed, 2);
    EXPECT_NE(refused.fault.find("rank 0: "), std::string::npos) << change.words;
    EXPECT_NE(refused.fault.find("rank 1: "), std::string::npos) << change.words;
    EXPECT_NE(refused.fault.find("step_00000010 is of another run: "), std::string::npos) << refused.fault;
    EXPECT_NE(refused.fault.find(change.words), std::string::npos) << refused.fault;
    EXPECT_NE(refused.fault.find("--force"), std::string::npos) << refused.fault;
  }
  EXPECT_EQ(kept(run_of(c)), Steps{10});
  // A run that is forced names what it overrides.
  JobConfig forced = c;
  forced.step.seed = 99, forced.step.model.rope_theta = 500, forced.experiment.force = true;
  const Trial went_on = train_in(forced, 1);
  EXPECT_EQ(went_on.losses.size(), 2U) << went_on.fault;
  EXPECT_TRUE(said(went_on, "--force overrides: seed is 99, was 1234; model.rope_theta is 500, was 10000"));
}

TEST(Resumed, WhatMayChangeIsSaid) {
  const Folder folder;
  JobConfig c = run_in(folder);
  ASSERT_EQ(train_in(c).fault, "");
  c.experiment.resume = true, c.trainer.max_steps = 11;
  c.step.strategy.tensor = 2, c.step.optimizer.learning_rate = 0.5;
  const Trial ran = train_in(c, 2);
  EXPECT_EQ(ran.losses.size(), 1U) << ran.fault;
  EXPECT_TRUE(said(ran,
                   "trainer.max_steps is 11, was 10; distributed_strategy.tensor_model_parallel_size is 2, was 1; "
                   "model.optim.lr is 0.5, was 0.001"));
  EXPECT_TRUE(said(ran, "(T1 P1 D1, now T2 P1 D1)"));
  const Trial done = train_in(c, 2);
  EXPECT_TRUE(said(done, "nothing is left to train: trainer.max_steps is 11, and step 11 is done"));
}

TEST(Resumed, DataThatWasShortenedIsSeen) {
  const Folder folder;
  JobConfig c = run_in(folder);
  ASSERT_EQ(train_in(c).fault, "");
  fs::resize_file(c.data.train_path[0], 300);
  c.experiment.resume = true, c.trainer.max_steps = 12;
  const Trial refused = train_in(c);
  EXPECT_NE(refused.fault.find("text.txt (300 bytes), was " + c.data.train_path[0] + " (400 bytes)"), std::string::npos)
      << refused.fault;
}

TEST(Resumed, WeightsAloneMayBeginAnotherRun) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.step.precision = Precision::mixed;
  ASSERT_EQ(train_in(c).fault, "");
  JobConfig next = c;
  next.step.name = "next", next.step.seed = 7, next.step.seq_length = 8, next.experiment.weights_only = true;
  next.experiment.resume_from = run_of(c) / "checkpoints" / tag_name(10);
  const Trial began = train_in(next, 2);
  EXPECT_EQ(began.losses.size(), 10U) << began.fault;
  EXPECT_TRUE(said(began, "weights alone"));
  // A run that is told to resume prefers a checkpoint of its own to the one that it began from.
  JobConfig again = next;
  again.step.name = "again", again.experiment.resume = true;
  ASSERT_EQ(train_in(again, 1, 4).fault, "");
  const Trial rest = train_in(again);
  EXPECT_EQ(rest.losses.size(), 6U) << rest.fault;
  EXPECT_FALSE(said(rest, "weights alone"));
  EXPECT_FALSE(fs::exists(run_of(again) / "version_0"));
  // Beginning anew from the run's own newest checkpoint moves the old run to version_0.
  again.experiment.resume = false, again.experiment.resume_from = run_of(again) / "checkpoints" / tag_name(10);
  again.trainer.max_steps = 3;
  ASSERT_EQ(train_in(again).fault, "");
  EXPECT_EQ(kept(run_of(again)), Steps{3});
  EXPECT_EQ(kept(run_of(again) / "version_0"), Steps{10});
  next.step.model.rope_theta = 500;
  EXPECT_NE(train_in(next).fault.find("model.rope_theta is 500, was 10000"), std::string::npos);
}

TEST(Resumed, AdaptersMayBeAddedToWeightsWithoutThem) {
  const Folder folder;
  JobConfig c = run_in(folder);
  ASSERT_EQ(train_in(c).fault, "");
  JobConfig tuned = c;
  tuned.step.name = "tuned", tuned.step.lora = {.rank = 4, .alpha = 8, .targets = {"q_proj"}};
  tuned.experiment.resume_from = run_of(c) / "checkpoints" / tag_name(10);
  const Trial began = train_in(tuned, 2);
  EXPECT_EQ(began.losses.size(), 10U) << began.fault;
  EXPECT_TRUE(said(began, "lora_rank is 4, was 0"));
  EXPECT_TRUE(said(began, "weights alone"));
  // Adapters that a checkpoint has can neither be left out nor changed.
  JobConfig other = tuned;
  other.step.name = "other", other.experiment.resume_from = run_of(tuned) / "checkpoints" / tag_name(10);
  for (const bool weights_only : {false, true})
    for (const std::size_t rank : {0, 2}) {
      other.step.lora.rank = rank, other.experiment.weights_only = weights_only;
      EXPECT_NE(train_in(other).fault.find(fmt::format("lora_rank is {}, was 4", rank)), std::string::npos);
    }
  // A run that resumes in its own folder must keep the adapters, or the lack of them, that it began with.
  c.step.lora = tuned.step.lora, c.experiment.resume = true, c.trainer.max_steps = 12;
  EXPECT_NE(train_in(c).fault.find("lora_rank is 4, was 0"), std::string::npos);
  EXPECT_EQ(kept(run_of(c)), Steps{10});
}

// If one rank lacks moments in the checkpoint, all ranks begin with new moments, also those that find all of theirs.
TEST(Resumed, MomentsAreLoadedOnAllRanksOrOnNone) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.step.strategy.pipeline = 2, c.experiment.checkpoints = true;
  ASSERT_EQ(train_in(c, 2).fault, "");
  const CheckpointReader whole(run_of(c) / "checkpoints" / tag_name(10));
  std::vector<std::vector<float>> values;
  std::vector<ShardTensor> tensors;
  for (const std::string& name : whole.names()) {
    if (name.starts_with("first_moment:model.layers.1.")) continue;
    const TensorSlice slice = whole.whole(name);
    values.emplace_back(slice.elements());
    whole.read(name, slice, values.back().data());
    tensors.push_back({name, DType::f32, slice, values.back().data()});
  }
  const fs::path some = folder.path() / "some.safetensors", weights = folder.path() / "weights.safetensors";
  write_shard(some, tensors);
  std::erase_if(tensors, [](const ShardTensor& t) { return t.name.find(':') != t.name.npos; });
  write_shard(weights, tensors);
  std::vector<std::vector<double>> losses;
  for (const fs::path& from : {some, weights}) {
    c.experiment.resume_from = from;
    const Trial ran = train_in(c, 2);
    EXPECT_TRUE(said(ran, "weights alone")) << ran.fault;
    losses.push_back(ran.losses);
  }
  EXPECT_EQ(losses[0].size(), 10U);
  EXPECT_EQ(losses[0], losses[1]);
  expect_on_threads(2, [&](ccl::Communicator& w) {
    Job job(c.step, w);
    EXPECT_FALSE(load_together(w, job, CheckpointReader(some)).state) << "rank " << w.rank();
    EXPECT_TRUE(load_together(w, job, CheckpointReader(run_of(c) / "checkpoints" / tag_name(10))).state);
  });
}

TEST(Resumed, PathsThatAreNotUtf8AreKeptAndCompared) {
  const Folder folder;
  JobConfig c = run_in(folder);
  const fs::path latin = folder.path() / "t\xe4xt.txt";
  fs::rename(c.data.train_path[0], latin);
  c.data.train_path = c.data.val_path = {latin};
  c.experiment.cache = folder.path() / "cache", c.step.name = "sm\xe4ll";
  ASSERT_EQ(train_in(c).fault, "");
  EXPECT_EQ(kept(run_of(c)), Steps{10});
  c.experiment.resume = true, c.trainer.max_steps = 12;
  const Trial ran = train_in(c);
  EXPECT_EQ(ran.losses.size(), 2U) << ran.fault;
  EXPECT_FALSE(said(ran, "data.train_path"));
  EXPECT_TRUE(said(ran, "a hit"));
}

TEST(Resumed, AnOlderCheckpointStandsInForADamagedOne) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.experiment.save_top_k = 3;
  for (const Rank world : {1, 2}) {
    fs::remove_all(c.experiment.directory);
    c.experiment.resume = false, c.trainer.max_steps = 10, c.step.strategy.tensor = world;
    ASSERT_EQ(train_in(c, world).fault, "");
    const fs::path tags = run_of(c) / "checkpoints";
    damage(tags / tag_name(10));
    fs::remove(tags / tag_name(8) / "checkpoint"), fs::resize_file(tags / tag_name(8) / "done", 3);
    c.experiment.resume = true, c.trainer.max_steps = 11;
    const Trial ran = train_in(c, world);
    EXPECT_EQ(ran.losses.size(), 5U) << ran.fault;
    EXPECT_TRUE(said(ran, "step_00000010 is damaged and is left out: "));
    EXPECT_TRUE(said(ran, "its checksum differs"));
    EXPECT_TRUE(said(ran, "step_00000008 is damaged and is left out: "));
    EXPECT_TRUE(said(ran, "loaded " + (tags / tag_name(6)).string()));
    // Damaged checkpoints do not count among those that are kept.
    EXPECT_EQ(kept(run_of(c)), (Steps{8, 10, 11}));
    EXPECT_TRUE(fs::exists(tags / ("damaged_" + tag_name(10))));
    EXPECT_TRUE(fs::exists(tags / ("damaged_" + tag_name(8))));
  }
  // If no checkpoint is whole, none is renamed; and a damaged one that is asked for by name is not replaced by another.
  const fs::path tags = run_of(c) / "checkpoints";
  for (const std::int64_t step : kept(run_of(c))) damage(tags / tag_name(step));
  EXPECT_NE(train_in(c, 2).fault.find("no checkpoint is whole; of the newest: "), std::string::npos);
  EXPECT_EQ(kept(run_of(c)), (Steps{8, 10, 11}));
  c.experiment.resume = false, c.experiment.resume_from = tags / tag_name(11);
  EXPECT_NE(train_in(c, 2).fault.find("its checksum differs"), std::string::npos);
}

TEST(Resumed, OldCheckpointsLoadWithASentence) {
  const Folder folder;
  JobConfig c = run_in(folder);
  ASSERT_EQ(train_in(c).fault, "");
  const fs::path tag = run_of(c) / "checkpoints" / tag_name(10);
  TagInfo info = read_done(tag);
  EXPECT_EQ(info.origin.data.at(0).bytes, 400U);
  EXPECT_EQ(info.origin.settings.at("model.num_layers"), "2");
  info.origin = {};
  write_done(tag, info);
  c.experiment.resume = true, c.trainer.max_steps = 12, c.step.seed = 7;
  // Tensors of the checkpoint that have no place in the model are reported.
  JobConfig half = c;
  half.step.model.num_layers = 1, half.trainer.max_steps = 11, half.experiment.checkpoints = false;
  const Trial halved = train_in(half, 2);
  EXPECT_TRUE(said(halved, "9 of 21 tensors of " + tag.string() + " have no place in the model: model.layers.1."))
      << halved.fault;
  const Trial ran = train_in(c);
  EXPECT_EQ(ran.losses.size(), 2U) << ran.fault;
  EXPECT_FALSE(said(ran, "have no place"));
  EXPECT_TRUE(said(ran, "step_00000010 does not say with which configuration it was trained: nothing was compared"));
}

TEST(Resumed, TagsAreOrderedByTheirSteps) {
  const Folder folder;
  for (const std::int64_t step : {99'999'999, 100'000'000, 5}) folder.put(tag_name(step) + "/done", "{}");
  folder.put("step_backup/done", "{}");
  folder.put("damaged_step_00000007/done", "{}");
  EXPECT_EQ(complete_tags(folder.path()),
            (std::vector<std::string>{tag_name(5), tag_name(99'999'999), tag_name(100'000'000)}));
}

}  // namespace
}  // namespace trellis::train
