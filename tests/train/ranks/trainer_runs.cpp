#include "tests/train/ranks/runs.h"

#include <gtest/gtest.h>

#include "train/checkpoint/checkpoint_folder.h"

namespace trellis::train {

namespace fs = std::filesystem;

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

Steps kept(const fs::path& run) {
  Steps steps;
  for (const std::string& tag : complete_tags(run / "checkpoints")) steps.push_back(std::stoll(tag.substr(5)));
  return steps;
}

Trial train_in(const JobConfig& config, Rank world, std::int64_t stop_after) {
  Trial out;
  out.fault = on_threads(world, [&](ccl::Communicator& c) {
    std::int64_t now = 0;
    const TrainingResult result =
        train(config, c,
              {.step = [&](const StepRecord& r) { out.losses.push_back(r.loss), out.last = r; },
               .validated = [&](std::int64_t, double loss) { out.validation = loss; },
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

}  // namespace trellis::train
