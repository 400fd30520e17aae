// Loads what a run begins with: a checkpoint to go on from, or weights.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/training_provenance.h"
#include "train/config/job_config.h"
#include "train/whole/job.h"

namespace trellis::train {

class Resume {
 public:
  // origin: of this run, on rank 0. Every rank of the world constructs one, and all make the same calls.
  Resume(const JobConfig&, ccl::Communicator& world, Job&, const TrainingProvenance& origin,
         std::function<void(const std::string&)> say);

  // Loads a tag, a safetensors file or a folder of Hugging Face. Returns the step to go on after; 0: training begins
  // anew, with the weights. Throws invalid_argument on every rank: a damaged file, or another configuration or data,
  // with each key and both values.
  std::int64_t from(const std::filesystem::path&);
  // Loads the newest of the folder's complete tags that can be loaded, and renames newer, damaged ones. Returns what
  // from() does; 0 also if there is no complete tag. Throws invalid_argument where all are damaged.
  std::int64_t from_newest(const std::filesystem::path& root);

 private:
  // Returns the fault of the first rank that has one. own: the run's own checkpoint, for which weights_only is ignored.
  std::string load(const std::filesystem::path&, bool own, std::int64_t& step);
  void compare(const CheckpointReader&, const std::filesystem::path&, bool anew) const;
  void say_unused(const CheckpointReader&, const std::filesystem::path&) const;
  bool anew(const CheckpointReader&, bool own) const;
  void set_aside(const std::filesystem::path& root, const std::vector<std::string>& tags) const;

  const JobConfig& config_;
  ccl::Communicator& world_;
  Job& job_;
  const TrainingProvenance& origin_;
  std::function<void(const std::string&)> say_;
};

}  // namespace trellis::train
