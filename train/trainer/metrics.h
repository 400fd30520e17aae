// The metrics of a run on disk: a line a step in metrics.csv, and TensorBoard's events.
#pragma once

#include <filesystem>
#include <memory>

#include "train/trainer/events.h"
#include "train/trainer/trainer.h"

namespace trellis::train {

class MetricsLog {
 public:
  // Lines and events of steps after `done` are from a run that was cut off; they go.
  MetricsLog(const std::filesystem::path& folder, std::int64_t done, bool tensorboard);
  void add(const StepRecord&);

 private:
  std::filesystem::path csv_;
  std::unique_ptr<EventFile> events_;
};

}  // namespace trellis::train
