// What the trainer does around its steps: which checkpoints it keeps, and that no two runs share a folder.
#include "train/trainer/trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "tests/folder.h"
#include "tests/train/ranks/runs.h"
#include "tests/why.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/trainer/run_folder.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;

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

// The rate is so high that the loss rises and falls: the best checkpoints are not the newest, nor always the oldest.
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

TEST(Trainer, OfALossTheLowestIsTheBestUnlessAskedOtherwise) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.data.val_path = c.data.train_path, c.trainer.val_check_interval = 2;
  c.step.optimizer.learning_rate = 1e-2;
  c.experiment.monitor = "val_loss";
  const Trial falling = train_in(c);
  ASSERT_EQ(falling.fault, "");
  EXPECT_EQ(kept(fs::path(c.experiment.directory) / "small"), Steps{10});
  c.experiment.monitor = "loss";
  const Trial ran = train_in(c);
  ASSERT_EQ(ran.fault, "");
  const auto lower = [&](std::int64_t a, std::int64_t b) {
    return ran.losses.at(static_cast<std::size_t>(a - 1)) < ran.losses.at(static_cast<std::size_t>(b - 1));
  };
  EXPECT_EQ(kept(fs::path(c.experiment.directory) / "small"), Steps{*std::ranges::min_element(ran.saved, lower)});
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

// A save that fails in the background ends training on every rank, long before the next save.
TEST(Trainer, ASaveThatFailsBesideTrainingEndsIt) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.experiment.asynchronous = c.experiment.resume = true;
  c.experiment.every_n_train_steps = 500, c.trainer.max_steps = 1000;
  folder.put("runs/small/checkpoints/" + tag_name(500), "in the tag's place");
  const Trial ran = train_in(c, 2);
  EXPECT_NE(ran.fault.find("rank 0: filesystem error: "), std::string::npos) << ran.fault;
  EXPECT_NE(ran.fault.find("step_00000500: 1 ranks could not write"), std::string::npos) << ran.fault;
  EXPECT_LT(ran.losses.size(), 1000U);
}

TEST(Trainer, FiguresThatCannotBeWrittenAreSaidOnEveryRank) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.experiment.resume = true;
  folder.put("runs/small/metrics.csv/kept", "a folder in the file's place");
  const std::string fault = train_in(c, 2).fault;
  for (const char* rank : {"rank 0: ", "rank 1: "})
    EXPECT_NE(fault.find(rank + folder.path().string() + "/runs/small/metrics.csv"), std::string::npos) << fault;
}

// After the third step, replaces the run's metrics.csv by a folder, so that it can't be written any more.
class ReplacesFigures : public Callback {
 public:
  explicit ReplacesFigures(fs::path csv) : csv_(std::move(csv)) {}
  void on_train_batch_end(TrainState& state, const StepRecord& record) override {
    if (record.step == 3 && state.world.rank() == 0) fs::remove(csv_), fs::create_directory(csv_);
  }

 private:
  fs::path csv_;
};

TEST(Trainer, FiguresThatCannotBeWrittenLaterAreSaidOnEveryRank) {
  const Folder folder;
  const JobConfig c = run_in(folder);
  const fs::path run = fs::path(c.experiment.directory) / "small";
  const std::string fault = on_threads(2, [&](ccl::Communicator& world) {
    Trainer(c, world, {.callbacks = {std::make_shared<ReplacesFigures>(run / "metrics.csv")}}).fit();
  });
  for (const char* rank : {"rank 0: ", "rank 1: "})
    EXPECT_NE(fault.find(rank + (run / "metrics.csv").string()), std::string::npos) << fault;
  EXPECT_EQ(kept(run), Steps{4}) << "the step after it is the last one, and is saved";
}

// Sets a weight to infinity on the rank that has it.
class Overflows : public Callback {
 public:
  explicit Overflows(std::string weight) : weight_(std::move(weight)) {}
  void on_train_start(TrainState& state) override {
    if (const Parameter* const p = state.job.parameters().find(weight_))
      state.job.fill(*p, [](std::uint64_t) { return std::numeric_limits<float>::infinity(); });
  }

 private:
  std::string weight_;
};

// A stage that receives a value that is not finite is told apart from the stage that computed it.
TEST(Trainer, WhatIsNoFiniteNumberIsNamedWhereItWasComputed) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.step.strategy.pipeline = 2, c.experiment.directory = "";
  for (const int layer : {0, 1}) {
    const std::string weight = fmt::format("model.layers.{}.mlp.down_proj.weight", layer);
    const std::string fault = on_threads(2, [&](ccl::Communicator& world) {
      Trainer(c, world, {.callbacks = {std::make_shared<Overflows>(weight)}}).fit();
    });
    const std::string first = "the first that is no finite number is ";
    const std::size_t at = fault.find(first);
    ASSERT_NE(at, fault.npos) << fault;
    EXPECT_TRUE(fault.substr(at + first.size()).starts_with(fmt::format("f0.model.layers.{}.forward.", layer)))
        << fault;
    EXPECT_NE(fault.find(fmt::format(" on rank {}", layer), at), fault.npos) << fault;
    EXPECT_NE(fault.find("another rank names where it began"), fault.npos) << fault;
  }
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

// Resuming from an earlier step starts a new run. The old run moves to version_0, so that its later steps are not
// resumed by mistake.
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
  // Resuming from the last step goes on with the same run.
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

TEST(Trainer, NodesMustDivideTheRanks) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.trainer.num_nodes = 2;
  EXPECT_NE(train_in(c).fault.find("trainer.num_nodes is 2: expected a divisor of 1, the ranks that were launched"),
            std::string::npos);
  EXPECT_EQ(train_in(c, 2).fault, "");
}

TEST(Trainer, ValidatesOnAShareOrNotAtAll) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.data.val_path = c.data.train_path;  // 24 samples, 12 batches
  std::vector<double> losses;
  for (const auto& [batches, share] : {std::pair{-1, 0.25}, {3, 1.0}, {-1, 0.01}, {1, 1.0}}) {
    c.trainer.limit_val_batches = batches, c.trainer.limit_val_share = share;
    const Trial ran = train_in(c);
    losses.push_back(ran.validation);
    fs::remove_all(c.experiment.directory);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[2], losses[3]);
  EXPECT_NE(losses[0], losses[2]);
  c.trainer.limit_val_batches = 0;
  EXPECT_TRUE(std::isnan(train_in(c).validation));
}

TEST(Trainer, UtilizationIsAShareOfThePeak) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.step.recompute = Recompute::full;
  EXPECT_TRUE(std::isnan(train_in(c).last.mfu));
  c.trainer.peak_tflops = 0.5;
  for (const Rank world : {1, 2}) {
    const Trial ran = train_in(c, world);
    ASSERT_EQ(ran.fault, "");
    const double peak = 0.5e12 * world * ran.last.seconds;
    // Products with weights take six FLOPs a weight and token. Causal attention's two products add less than 30%.
    const double weights = 2 * (32 * 32 + 2 * 32 * 16 + 32 * 32 + 3 * 32 * 48) + 32 * 64, tokens = 2 * 16;
    EXPECT_GT(ran.last.mfu * peak, 6 * weights * tokens);
    EXPECT_LT(ran.last.mfu * peak, 1.3 * 6 * weights * tokens);
    EXPECT_GT(ran.last.hfu, 1.2 * ran.last.mfu) << "what is computed again counts";
    EXPECT_TRUE(said(ran, "MFU: "));
  }
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
