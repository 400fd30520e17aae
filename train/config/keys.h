// The keys of a configuration file, by the names of NxD Training's YAML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/config/job_config.h"

namespace trellis::train {

// A value as a file has it: a word, or a list of words. null stands for the default.
struct KeyValue {
  std::string key;  // "distributed_strategy.zero1"
  std::vector<std::string> words;
  bool list = false;
  bool null = false;
};

std::vector<std::string> known_keys();
bool is_section(std::string_view key);  // "data", "model.optim"

// Throws invalid_argument: a value that the key does not take, with what was expected; a feature that is not built,
// with a sentence. Returns what should be said of a key that has no effect here; empty: nothing. The key must be known.
std::string apply(JobConfig&, const KeyValue&);

}  // namespace trellis::train
