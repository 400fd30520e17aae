// Files that would be trained on as text, and are not: each is named for what it is.
#pragma once

#include <filesystem>

#include "train/data/read_file.h"

namespace trellis::train {

// Throw invalid_argument; of data sets that can be prepared, with the command that does it.
void refuse_other_kinds(const ReadFile&);
void refuse_folder(
    const std::filesystem::path&);  // where it is one: NxD Training's train_dir is a folder of a data set

// "python3 -m trellis.train prepare PATH --tokenizer DIR -o NAME"
std::string prepare_command(const std::filesystem::path&);

}  // namespace trellis::train
