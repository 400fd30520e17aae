// What Llama and its kin have in common.
#pragma once

#include <string>

#include "train/models/block.h"

namespace trellis::train {

// With their two ends, by the names of Hugging Face's files; no layers yet.
Model llama_ends(std::string name);

}  // namespace trellis::train
