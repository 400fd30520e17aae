// What a checkpoint was trained as, and whether a run may go on with it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/config/job_config.h"
#include "train/data/source.h"

namespace trellis::train {

struct Origin {
  std::map<std::string, std::string> settings = {};  // by key; none: the checkpoint does not say
  std::vector<DataFile> data = {};
  std::string version = {};  // of the code
};

Origin origin_of(const JobConfig&, std::vector<DataFile> data, std::string version);

// The configuration that the settings say; what they leave out is as by default. Keys of other builds are left out.
JobConfig config_of(const Origin&);

// In sentences, each with key and both values.
struct Differences {
  std::vector<std::string> refused, said;
};

// anew: only the weights are taken, so that samples and the optimizer may be others.
Differences differences(const Origin& was, const JobConfig& now, const std::vector<DataFile>& data, bool anew);

}  // namespace trellis::train
