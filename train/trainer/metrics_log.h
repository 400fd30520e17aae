// The metrics of a run on disk: a line a step in metrics.csv, and TensorBoard's events.
#pragma once

#include <filesystem>
#include <memory>

#include "train/trainer/callback.h"
#include "train/trainer/tensorboard_events.h"

namespace trellis::train {

class MetricsLog {
 public:
  // Removes the lines and events of steps after `done`: they are from a run that was cut off.
  MetricsLog(const std::filesystem::path& folder, std::int64_t done, bool tensorboard);
  void add(const StepRecord&);
  void scalar(const std::string& name, std::int64_t step, double value);  // to TensorBoard alone

 private:
  std::filesystem::path csv_;
  std::unique_ptr<TensorBoardEvents> events_;
};

}  // namespace trellis::train
