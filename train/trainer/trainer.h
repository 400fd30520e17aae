// Trains: data in, steps run, figures written, checkpoints kept.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "train/config/job_config.h"

namespace trellis::train {

struct StepRecord {
  std::int64_t step = 0;
  double loss = 0, learning_rate = 0;
  double gradient_norm = 0, parameter_norm = 0;  // 0: not asked for
  double seconds = 0, tokens_per_second = 0;
  double flops_per_second = 0;  // of all ranks; recomputed operations count again
  // Model and hardware FLOPs utilization: parts of trainer.peak_tflops on every rank. NaN: that is not known.
  double mfu = std::numeric_limits<double>::quiet_NaN(), hfu = std::numeric_limits<double>::quiet_NaN();
  double validation_loss = std::numeric_limits<double>::quiet_NaN();  // NaN: not after this step
  std::int64_t slow_rank = -1;  // a rank that computes more than half again as long as the middle one
};

// Called on rank 0, but for `begin` and `stop`, which every rank calls. They run between steps.
struct TrainerHooks {
  std::function<void(std::int64_t first_step)> begin = {};
  std::function<void(const StepRecord&)> step = {};
  std::function<void(std::int64_t step, double loss)> validated = {};
  std::function<void(std::int64_t step)> saved = {};  // an asynchronous save has begun
  std::function<void(const std::string&)> say = {};
  std::function<bool()> stop = {};  // any rank's true ends training after the step, with a checkpoint
};

struct TrainingResult {
  std::vector<StepRecord> history;  // of this run
  std::int64_t last_step = 0;
  bool stopped = false;
};

// Every rank of the world calls it. Throws invalid_argument for a configuration that does not fit, runtime_error that
// names rank, operation and step where a loss is not a number, and what communicators and files throw.
TrainingResult train(const JobConfig&, ccl::Communicator& world, const TrainerHooks& = {});

}  // namespace trellis::train
