// What a checkpoint, or a folder of Hugging Face, says of its model and of how it was trained.
#pragma once

#include <string>
#include <vector>

#include "tools/train/config_file.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace trellis::tools {

// The configuration of what is in `path`, or of the file `config` where one is named, changed by KEY=VALUE. It is for
// one rank, unless a change says otherwise. Throws invalid_argument where the checkpoint does not name its model and no
// file is named.
ReadConfig config_of_source(const train::CheckpointReader&, const std::string& path, const std::string& config,
                            const std::vector<std::string>& changes);

}  // namespace trellis::tools
