// What Llama and its kin have in common.
#pragma once

#include <string>

#include "train/models/model_interface.h"

namespace trellis::train {

// A model with embedding and head, named as in Hugging Face's files. It has no layers yet.
Model llama_ends(std::string name);

}  // namespace trellis::train
