// Hugging Face's config.json: what the model is.
#pragma once

#include <filesystem>

#include "train/config/job_config.h"

namespace trellis::train {

// Throws invalid_argument that names file, field, value and what was expected.
void apply_hf_config(JobConfig&, const std::filesystem::path&);

}  // namespace trellis::train
