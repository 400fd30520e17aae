// The loss of a checkpoint on data of its own, without training.
#pragma once

#include "ccl/communicator.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/config/job_config.h"

namespace trellis::train {

struct EvaluationResult {
  double loss = 0;        // the mean over the tokens that count, in nats; for models of pairs, plus next-sentence loss
  double perplexity = 0;  // NaN of models of pairs, whose loss is a sum of two
  std::int64_t sequences = 0;
};

// Every rank calls it. The data is the configuration's val_path, of which limit_val_batches and limit_val_share say how
// much counts; sequences that fill no global batch are left out. Throws what Job, load and Validation throw.
EvaluationResult evaluate(const JobConfig&, ccl::Communicator& world, const CheckpointReader&);

}  // namespace trellis::train
