// The loss of weights on data of their own: of a run's validation, and of a checkpoint.
#include "train/trainer/evaluate.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/folder.h"
#include "tests/train/ranks/runs.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;

// A run whose weights stay as they are.
JobConfig still(const Folder& folder) {
  JobConfig c = run_in(folder);
  c.data.val_path = c.data.train_path;
  c.step.optimizer.learning_rate = 0, c.trainer.max_steps = 2;
  return c;
}

fs::path tag_of(const JobConfig& c) {
  return fs::path(c.experiment.directory) / c.step.name / "checkpoints" / tag_name(2);
}

TEST(EvaluationResult, IsTheLossOfTheLabelsAlone) {
  const Folder folder;
  JobConfig c = still(folder);
  const Trial plain = train_in(c);
  ASSERT_EQ(plain.fault, "");
  c.step.model.label_smoothing = 0.3;
  const Trial smoothed = train_in(c);
  EXPECT_NE(smoothed.losses, plain.losses);
  EXPECT_EQ(smoothed.validation, plain.validation);
  expect_on_threads(1, [&](ccl::Communicator& world) {
    EXPECT_EQ(evaluate(c, world, CheckpointReader(tag_of(c))).loss, plain.validation);
  });
}

TEST(EvaluationResult, NoBatchHasNoLoss) {
  const Folder folder;
  JobConfig c = still(folder);
  ASSERT_EQ(train_in(c).fault, "");
  c.trainer.limit_val_batches = 0;
  const std::string fault =
      on_threads(1, [&](ccl::Communicator& world) { evaluate(c, world, CheckpointReader(tag_of(c))); });
  EXPECT_NE(fault.find("trainer.limit_val_batches is 0: expected"), std::string::npos) << fault;
}

}  // namespace
}  // namespace trellis::train
