// What a program may do while a run trains: a list of callbacks, each called in its turn.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "train/config/job_config.h"
#include "train/whole/job.h"

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
  std::int64_t slow_rank = -1;  // a rank that computes more than 1.5 times as long as the median; -1: none
};

// The data of one step and this data-parallel rank: for each micro-batch, its tokens and labels, one sample after the
// other.
struct Batch {
  std::int64_t step = 0;
  std::vector<std::vector<std::int32_t>> tokens, labels;
  std::vector<std::vector<std::int32_t>> types, next;  // of models of pairs
  std::vector<std::vector<std::int32_t>> starts;       // of cut attention

  MicroBatch micro(std::size_t m) const;
};

struct TrainingResult {
  std::vector<StepRecord> history;  // of this run
  std::int64_t last_step = 0;
  bool stopped = false;
};

struct TrainState {
  const JobConfig& config;
  ccl::Communicator& world;
  Job& job;
  std::int64_t step = 0;  // the last one that is done
  bool stop = false;      // if any rank sets it, training ends after the step, with a checkpoint
  // Adds a figure to TensorBoard, at the step that is done. On rank 0; elsewhere it does nothing.
  std::function<void(const std::string& name, double value)> log = {};
};

// Every rank has the same ones, in one order: they run on all ranks, between steps, so that they may communicate.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_train_start(TrainState&) {}  // with the parameters that the first step begins with
  virtual void on_train_batch_start(TrainState&, const Batch&) {}
  virtual void on_train_batch_end(TrainState&, const StepRecord&) {}
  virtual void on_validation_end(TrainState&, double /*loss*/) {}
  virtual void on_save_checkpoint(TrainState&) {}  // the checkpoint is saved; an asynchronous save has only begun
  virtual void on_train_end(TrainState&, const TrainingResult&) {}
};

}  // namespace trellis::train
