// Families of models by Hugging Face's model_type: how fields of config.json are called there and here.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/config/config.h"

namespace trellis::train {

struct HfField {
  const char *theirs, *ours;  // "n_embd", "model.hidden_size"
};

// A field that is supported only with the values in `served`.
struct HfSupportedValues {
  const char* field;
  std::vector<nlohmann::json> served;  // the first is the default
  const char* why;
};

struct HfFamily {
  const char *type, *architecture;  // model_type, and the name of its architecture here
  const char* class_name;           // in the field "architectures"
  std::vector<HfField> fields;
  std::vector<HfSupportedValues> expected;
  bool tied;       // whether word embeddings are tied, where the file does not say
  double epsilon;  // of norms, where the file does not say
};

const std::vector<HfFamily>& hf_families();
const HfFamily& hf_family_of(const StepConfig&);  // throws invalid_argument where there is none

}  // namespace trellis::train
