// The loss on data that is not trained on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/config/job_config.h"
#include "train/trainer/batch_prefetcher.h"
#include "train/whole/evaluation.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

class Validation {
 public:
  // Every rank makes one. data: a program's own, or null. Throws invalid_argument where the data has fewer samples than
  // a batch.
  Validation(const JobConfig&, Job&, std::shared_ptr<const DataSource> data = {});
  // The mean over at most so many batches, the same ones each time; -1: over `share` of the batches that the data has.
  double loss(std::int64_t most, double share = 1);
  std::int64_t batches() const { return batches_; }  // that the data has

 private:
  Job& job_;
  Evaluation evaluation_;
  std::unique_ptr<BatchSource> source_;
  std::int64_t batches_ = 0;
};

// Reads token files, blended where there are weights, or a program's own data. Throws what TokenFile, Sampler, Blend
// and BertSamples throw; also for tokens that are not in the vocabulary.
std::unique_ptr<BatchSource> source_of(const std::vector<std::string>& paths, const std::vector<double>& weights,
                                       const JobConfig&, const RankStep&);
std::unique_ptr<BatchSource> source_of(std::shared_ptr<const DataSource>, const JobConfig&, const RankStep&);

}  // namespace trellis::train
