// Hugging Face's config.json: what a model is, by the names of each family.
#pragma once

#include <filesystem>
#include <string>

#include "train/config/job_config.h"

namespace trellis::train {

// Reads the model of FOLDER/config.json, or of the file itself. Returns a note on fields that have no effect here;
// empty: there are none. Throws invalid_argument that names file, field, value and what was expected.
std::string apply_hf_config(JobConfig&, const std::filesystem::path&);

// The same for the text of a file. `name` is the file's, for errors.
std::string apply_hf_text(JobConfig&, const std::string& name, const std::string& text);

// The text of a config.json for the model. base: the text of an earlier one, whose other fields are kept; empty: none.
// type: the type of the weights, such as "bfloat16".
std::string hf_config_text(const StepConfig&, const std::string& base, const std::string& type);

}  // namespace trellis::train
