// A training job's configuration: a YAML file with NxD Training's keys, and changes from the command line.
#pragma once

#include <string>
#include <vector>

#include "train/config/job_config.h"

namespace trellis::tools {

struct ReadConfig {
  train::JobConfig job;
  std::vector<std::string> notes;  // keys that have no effect here, and why
  bool says_batch = true;          // false: data.global_batch_size is the default one
};

// The notes as one list; empty where there are none.
std::string list_of(const std::vector<std::string>& notes);

// path: a YAML file, or a folder of Hugging Face with model and weights. changes: "a.b=c"; lists as "[1, 2]". begin:
// the configuration that the keys change. Throws invalid_argument with the line of faulty YAML, or with all mistakes
// together: unknown keys, with the nearest known ones, and values that keys do not take.
ReadConfig read_config(const std::string& path, const std::vector<std::string>& changes);
ReadConfig parse_config(const std::string& name, const std::string& text, const std::vector<std::string>& changes,
                        const train::JobConfig& begin = {});

// A folder of Hugging Face says nothing of batches: where none was set, the global batch becomes one micro-batch for
// each data-parallel rank among `ranks` ranks, and a note says so.
void complete_batch(ReadConfig&, train::Rank ranks);

}  // namespace trellis::tools
