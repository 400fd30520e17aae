// The trainer's own doing around its steps: which checkpoints stay, and that a run has its folder for itself.
#include "train/trainer/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/folder.h"
#include "tests/train/ranks/runs.h"
#include "tests/why.h"
#include "train/checkpoint/tag.h"
#include "train/trainer/run_folder.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;

// A run of ten steps that saves every second one.
JobConfig run_in(const Folder& folder) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>(i * i % 61);
  JobConfig c;
  c.step = small_llama();
  c.step.name = "small", c.step.model.num_layers = 2, c.step.global_batch_size = 2;
  c.trainer.max_steps = 10, c.trainer.threads = 1;
  c.data.train_path = {folder.put("text.txt", text)};
  c.experiment.directory = folder.path() / "runs";
  c.experiment.every_n_train_steps = 2, c.experiment.tensorboard = false;
  return c;
}

using Steps = std::vector<std::int64_t>;

Steps kept(const fs::path& run) {
  Steps steps;
  for (const std::string& tag : complete_tags(run / "checkpoints")) steps.push_back(std::stoll(tag.substr(5)));
  return steps;
}

struct Trial {
  Steps saved;
  std::vector<double> losses;     // by step, from 0 as of step 1
  std::vector<std::string> said;  // on rank 0
  std::string fault;
};

Trial train_in(const JobConfig& config, Rank world = 1, std::int64_t stop_after = 0) {
  Trial out;
  out.fault = on_threads(world, [&](ccl::Communicator& c) {
    std::int64_t now = 0;
    const TrainingResult result = train(config, c,
                                        {.step = [&](const StepRecord& r) { out.losses.push_back(r.loss); },
                                         .saved = [&](std::int64_t step) { out.saved.push_back(step); },
                                         .say = [&](const std::string& text) { out.said.push_back(text); },
                                         .stop = [&] { return ++now == stop_after; }});
    EXPECT_EQ(result.last_step, stop_after > 0 ? stop_after : config.trainer.max_steps);
  });
  return out;
}

bool said(const Trial& t, const std::string& words) {
  for (const std::string& text : t.said)
    if (text.find(words) != text.npos) return true;
  return false;
}

TEST(Trainer, KeepsTheLastOnesUnlessAskedOtherwise) {
  const Folder folder;
  JobConfig c = run_in(folder);
  for (const bool asynchronous : {false, true})
    for (const std::int64_t k : {1, 2, 3}) {
      fs::remove_all(c.experiment.directory);
      c.experiment.save_top_k = k, c.experiment.asynchronous = asynchronous;
      const Trial ran = train_in(c, 2);
      ASSERT_EQ(ran.fault, "");
      EXPECT_EQ(ran.saved, (Steps{2, 4, 6, 8, 10}));
      const Steps last(ran.saved.end() - k, ran.saved.end());
      EXPECT_EQ(kept(fs::path(c.experiment.directory) / "small"), last);
    }
}

// The loss rises and falls on its way, as the rate is high, so that the best are neither the newest nor, always, the
// oldest.
TEST(Trainer, KeepsTheBestByLoss) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.step.optimizer.learning_rate = 0.2, c.step.optimizer.clip = false;
  c.experiment.save_top_k = 2, c.experiment.monitor = "loss";
  for (const char* mode : {"min", "max"})
    for (const bool last : {false, true}) {
      fs::remove_all(c.experiment.directory);
      c.experiment.mode = mode, c.experiment.save_last = last;
      const Trial ran = train_in(c);
      ASSERT_EQ(ran.fault, "");
      std::vector<std::pair<double, std::int64_t>> ranked;
      for (const std::int64_t step : ran.saved)
        ranked.emplace_back((c.experiment.mode == "min" ? 1 : -1) * ran.losses.at(static_cast<std::size_t>(step - 1)),
                            step);
      std::ranges::sort(ranked);
      Steps best{ranked[0].second, ranked[1].second};
      ASSERT_NE(best[0] + best[1], 8 + 10) << "the best are the newest";
      if (last && std::ranges::find(best, 10) == best.end()) best.push_back(10);
      std::ranges::sort(best);
      EXPECT_EQ(kept(fs::path(c.experiment.directory) / "small"), best) << mode << (last ? ", and the last" : "");
    }
}

TEST(Trainer, WhatAStoppedRunSavedStaysToGoOnFrom) {
  const Folder folder;
  JobConfig c = run_in(folder);
  const fs::path run = fs::path(c.experiment.directory) / "small";
  c.experiment.mode = "min", c.experiment.resume = true;
  ASSERT_EQ(train_in(c, 1, 7).fault, "");
  EXPECT_EQ(kept(run), (Steps{2, 7}));
  const Trial rest = train_in(c);
  EXPECT_EQ(rest.losses.size(), 3U) << rest.fault;
  EXPECT_EQ(kept(run), (Steps{2}));
}

TEST(Trainer, ANewRunSetsTheOldOneAside) {
  const Folder folder;
  JobConfig c = run_in(folder);
  const fs::path run = fs::path(c.experiment.directory) / "small";
  ASSERT_EQ(train_in(c).fault, "");
  c.step.seed = 5, c.trainer.max_steps = 3;
  const Trial second = train_in(c, 2);
  ASSERT_EQ(second.fault, "");
  EXPECT_TRUE(said(second, (run / "version_0").string()));
  EXPECT_EQ(kept(run), (Steps{3}));
  EXPECT_EQ(kept(run / "version_0"), (Steps{10}));
  EXPECT_TRUE(fs::exists(run / "version_0" / "metrics.csv"));
  // Resuming goes on with the second run, not with the first one's later step.
  c.experiment.resume = true, c.trainer.max_steps = 4;
  const Trial third = train_in(c);
  EXPECT_EQ(third.losses.size(), 1U) << third.fault;
  EXPECT_TRUE(said(third, tag_name(3)));
  EXPECT_FALSE(fs::exists(run / "version_1"));
}

// A step that is not the last one begins another run: the steps after it must not be resumed from.
TEST(Trainer, ARunFromAnEarlierStepIsANewOne) {
  const Folder folder;
  JobConfig c = run_in(folder);
  const fs::path run = fs::path(c.experiment.directory) / "small";
  c.experiment.save_top_k = -1;
  ASSERT_EQ(train_in(c).fault, "");
  c.experiment.resume_from = run / "checkpoints" / tag_name(4), c.trainer.max_steps = 6;
  const Trial back = train_in(c, 2);
  EXPECT_EQ(back.losses.size(), 2U) << back.fault;
  EXPECT_EQ(kept(run), (Steps{6}));
  EXPECT_EQ(kept(run / "version_0"), (Steps{2, 4, 6, 8, 10}));
  // From the last one it goes on.
  c.experiment.resume_from = run / "checkpoints" / tag_name(6), c.trainer.max_steps = 8;
  ASSERT_EQ(train_in(c).fault, "");
  EXPECT_EQ(kept(run), (Steps{6, 8}));
  EXPECT_FALSE(fs::exists(run / "version_1"));
}

TEST(Trainer, TwoJobsDoNotShareAFolder) {
  const Folder folder;
  const JobConfig c = run_in(folder);
  const fs::path run = fs::path(c.experiment.directory) / "small";
  {
    const RunFolder other(run);
    ASSERT_TRUE(other.locked());
    const Trial refused = train_in(c, 2);
    for (const char* words : {"rank 0: ", "rank 1: ", "belongs to a job that runs, process ", "exp_manager.exp_dir"})
      EXPECT_NE(refused.fault.find(words), refused.fault.npos) << refused.fault;
    EXPECT_FALSE(other.used());
  }
  EXPECT_EQ(train_in(c, 2).fault, "");
}

TEST(RunFolder, CountsVersions) {
  const Folder folder;
  RunFolder run(folder.path());
  EXPECT_FALSE(run.used());
  folder.put("version_7/metrics.csv", "old");
  folder.put("mine.txt", "of the user");
  EXPECT_FALSE(run.used()) << "what was set aside, and files of others, are no run";
  for (const int number : {8, 9}) {
    folder.put("metrics.csv", "new");
    EXPECT_TRUE(run.used());
    EXPECT_EQ(run.set_aside(), folder.path() / ("version_" + std::to_string(number)));
  }
  EXPECT_TRUE(fs::exists(folder.path() / "version_9/metrics.csv"));
  EXPECT_TRUE(fs::exists(folder.path() / "mine.txt"));
}

}  // namespace
}  // namespace trellis::train
