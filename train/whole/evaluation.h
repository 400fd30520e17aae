// Computes the loss of a job on other data: forward passes only, in memory of their own except for the parameters.
#pragma once

#include <memory>

#include "train/step/run.h"
#include "train/whole/job.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

class Evaluation {
 public:
  // Every rank of the job makes one. It uses the job's parameters and communicators: while it runs, the job must not,
  // and what the job began must be settled. Throws runtime_error when the step is not proved.
  explicit Evaluation(Job&);

  const RankStep& step() const { return step_; }
  void set_batch(std::size_t micro, const MicroBatch& batch) { put_batch(step_, *runner_, micro, batch); }
  double run();  // the mean loss over the batch, on every rank: of the labels alone, without smoothing

 private:
  RankStep step_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace trellis::train
