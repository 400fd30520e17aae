// The configuration and data that a checkpoint was trained with, and whether a run may go on from it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/config/job_config.h"
#include "train/data/source.h"

namespace trellis::train {

struct TrainingProvenance {
  std::map<std::string, std::string> settings = {};  // by key; none: the checkpoint does not say
  std::vector<DataFile> data = {};
  std::string version = {};  // of the code
};

TrainingProvenance origin_of(const JobConfig&, std::vector<DataFile> data, std::string version);

// The configuration that the settings describe, with defaults for missing ones. Keys that this build lacks are ignored.
JobConfig config_of(const TrainingProvenance&);

// Sentences with the key and both values. `refused`: the run must not go on; `said`: it goes on and reports them.
struct ResumeDifferences {
  std::vector<std::string> refused, said;
};

// anew: only the weights are taken, so that samples and the optimizer may differ.
ResumeDifferences differences(const TrainingProvenance& was, const JobConfig& now, const std::vector<DataFile>& data,
                              bool anew);

}  // namespace trellis::train
