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
std::string canonical_key(std::string_view);  // the main name of a key that has several; throws as apply does
bool is_section(std::string_view key);        // "data", "model.optim"

// Sets what the key says. Throws invalid_argument for a value that the key does not take, naming what was expected, and
// for a feature that is not built, saying so. Returns a note if the key has no effect here, else an empty text. The key
// must be known.
std::string apply(JobConfig&, const KeyValue&);

// The turn in which a key is applied, from 0. Keys that also set what other keys set (first Hugging Face's file, then
// the update rule) have earlier turns, so that the others override them wherever they stand. The key must be known.
int turn_of(std::string_view key);

// To be called after all keys: sets the architecture that Megatron's words describe. Throws invalid_argument if they
// describe none, or not the one that is named.
void complete(JobConfig&);

// Checks that every number is in its key's range, whoever set it. Throws invalid_argument with key, value and range.
void check_values(const JobConfig&);

// What a resumed run may do with a setting that its checkpoint has with another value.
enum class ChangeOnResume : std::uint8_t {
  silent,    // change it: nothing depends on it
  said,      // change it, and report the change
  course,    // change it only where training begins anew: what goes on depends on it (samples, the optimizer's state)
  adapters,  // as `model`, but adapters may be added to weights without any, where training begins anew
  model,     // never change it: the weights would mean something else
};

struct Setting {
  std::string key, text;  // `text`: the value as a file would have it
  ChangeOnResume resumed = ChangeOnResume::silent;
};
std::vector<Setting> settings_of(const JobConfig&);  // all but those that are silent

}  // namespace trellis::train
