#include "tools/train/checkpoint/source_config.h"

#include <algorithm>

#include "text/refuse.h"

namespace trellis::tools {
namespace {

constexpr std::size_t usual_length = 1024;

// The job on one rank with one sequence: the layout of the checkpoint's training does not matter here.
train::JobConfig alone(train::JobConfig job) {
  job.step.strategy = {};
  job.step.micro_batch_size = job.step.global_batch_size = 1;
  job.step.recompute = train::Recompute::none;
  job.step.recompute_layers.clear();
  job.trainer.devices = job.trainer.num_nodes = 0;
  return job;
}

}  // namespace

ReadConfig config_of_source(const train::CheckpointReader& source, const std::string& path, const std::string& config,
                            const std::vector<std::string>& changes) {
  if (!config.empty()) return read_config(config, changes);
  train::JobConfig job;
  if (source.hf()) {
    job.step = *source.hf();
    job.step.seq_length = std::min(usual_length, job.step.model.max_position_embeddings);
    job.experiment.hf = path;
  } else if (!source.info().origin.settings.empty()) {
    job = alone(train::config_of(source.info().origin));
  } else {
    text::refuse("{} does not say of which model it is: expected --config FILE, the configuration", path);
  }
  return parse_config(path, "", changes, job);
}

}  // namespace trellis::tools
