// Trains a model: feeds data, runs steps, writes figures and keeps checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/data/source.h"
#include "train/trainer/callback.h"

namespace trellis::train {

// Called on rank 0, except `begin` and `stop`, which are called on every rank. They run between steps.
struct TrainerHooks {
  std::function<void(std::int64_t first_step)> begin = {};
  std::function<void(const StepRecord&)> step = {};  // called for the steps that are recorded
  std::function<void(std::int64_t step, double loss)> validated = {};
  std::function<void(std::int64_t step)> saved = {};  // the checkpoint is saved; an asynchronous save has only begun
  std::function<void(const std::string&)> say = {};
  std::function<bool()> stop = {};  // if it returns true on any rank, training ends after the step, with a checkpoint
};

// What a program brings of its own, the same on every rank.
struct TrainerParts {
  std::vector<std::shared_ptr<Callback>> callbacks = {};
  std::shared_ptr<const DataSource> train_data = {}, val_data = {};  // instead of data.train_path and data.val_path
  std::function<double(std::int64_t step)> learning_rate = {};       // of a step, counted from 1; none: the schedule's
  TrainerHooks hooks = {};
};

class Trainer {
 public:
  Trainer(JobConfig, ccl::Communicator& world, TrainerParts = {});

  // Every rank of the world calls it. from: a checkpoint to go on from, as exp_manager.resume_from_checkpoint. Throws
  // invalid_argument for a configuration that does not fit, runtime_error that names rank, operation and step where a
  // loss is not a number, and what communicators, files and the program's own parts throw.
  TrainingResult fit(const std::filesystem::path& from = {});

 private:
  JobConfig config_;
  ccl::Communicator& world_;
  TrainerParts parts_;
};

// Runs a Trainer's fit() whose TrainerParts have only the hooks.
TrainingResult train(const JobConfig&, ccl::Communicator& world, const TrainerHooks& = {});

}  // namespace trellis::train
