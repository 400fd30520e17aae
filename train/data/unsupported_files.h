// Refuses files that would be read as text but are something else, and says what they are.
#pragma once

#include <filesystem>

#include "train/data/input_file.h"

namespace trellis::train {

// Both throw invalid_argument. For data that can be prepared, the message has the command that does it.
void refuse_other_kinds(const InputFile&);
void refuse_folder(
    const std::filesystem::path&);  // throws for a folder, such as the data set that NxD Training's train_dir is

// "python3 -m trellis.train prepare PATH --tokenizer DIR -o NAME"
std::string prepare_command(const std::filesystem::path&);

}  // namespace trellis::train
