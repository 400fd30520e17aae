// A profile of one step: when each operation ran, on each of the first 16 ranks. Times of ranks on other hosts, whose
// clocks differ, are exact to half of the round trip of a message to rank 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/step/run.h"
#include "train/trainer/callback.h"

namespace trellis::tools {

class StepProfiler : public train::Callback {
 public:
  // Writes to `path` as write_timeline does, or a picture to .svg. after_steps: which step of the run is profiled, from
  // 1; a later one has warm caches.
  StepProfiler(std::string path, std::int64_t after_steps) : path_(std::move(path)), after_(after_steps) {}

  static void expect_file(const std::string& path);  // call it before long work; throws as expect_timeline_file does

  void on_train_batch_start(train::TrainState&, const train::Batch&) override;
  void on_train_batch_end(train::TrainState&, const train::StepRecord&) override;
  const std::string& table() const { return table_; }  // on rank 0: where the step's time went

 private:
  static bool is_picture(const std::string& path);

  std::string path_, table_;
  std::int64_t after_, seen_ = 0;
  std::vector<train::Runner::Timed> timed_;
};

}  // namespace trellis::tools
