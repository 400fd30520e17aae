#include "train/trainer/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "train/checkpoint/save_load.h"
#include "train/models/model_interface.h"
#include "train/trainer/threads_per_rank.h"
#include "train/trainer/validation.h"

namespace trellis::train {

EvaluationResult evaluate(const JobConfig& config, ccl::Communicator& world, const CheckpointReader& source) {
  if (config.trainer.limit_val_batches == 0)
    throw std::invalid_argument("trainer.limit_val_batches is 0: expected batches, a share of them, or -1, all");
  JobConfig c = config;
  // The step updates nothing, so it is laid out with the rule that takes the least memory: one without state.
  c.step.optimizer.name = "sgd", c.step.optimizer.momentum = 0, c.step.optimizer.nesterov = false;
  c.step.strategy.zero1 = false;
  const int threads = compute_threads(world, c.trainer.threads);
  Job job(c.step, world, threads);
  load(job, source, false);
  Validation validation(c, job);
  const double loss = validation.loss(c.trainer.limit_val_batches, c.trainer.limit_val_share);
  const auto share = static_cast<std::int64_t>(c.trainer.limit_val_share * static_cast<double>(validation.batches()));
  const std::int64_t limit = c.trainer.limit_val_batches < 0
                                 ? std::max<std::int64_t>(1, share)
                                 : std::min(c.trainer.limit_val_batches, validation.batches());
  const bool pairs = model_named(c.step.model.architecture).pairs;
  return {.loss = loss,
          .perplexity = pairs ? std::numeric_limits<double>::quiet_NaN() : std::exp(loss),
          .sequences = limit * static_cast<std::int64_t>(c.step.global_batch_size)};
}

}  // namespace trellis::train
