// The loss on data that is not trained on.
#pragma once

#include <memory>

#include "train/config/job_config.h"
#include "train/trainer/batches.h"
#include "train/whole/evaluation.h"

namespace trellis::train {

class Validation {
 public:
  // Every rank makes one. Throws invalid_argument where the data has fewer samples than a batch.
  Validation(const JobConfig&, Job&);
  // The mean over at most so many batches, the same ones each time; -1: all of the share of those that the data has.
  double loss(std::int64_t most, double share = 1);

 private:
  Job& job_;
  Evaluation evaluation_;
  std::unique_ptr<Source> source_;
  std::int64_t batches_ = 0;
};

// Reads token files. Throws what TokenFile, Sampler and MaskedPairs throw, and for tokens outside of the vocabulary.
std::unique_ptr<Source> source_of(const std::vector<std::string>& paths, const JobConfig&, const Step&);

}  // namespace trellis::train
