// Cuts a checkpoint anew for another layout, without running a job: writes a file for each rank of the new layout.
#pragma once

#include "train/checkpoint/checkpoint_folder.h"
#include "train/config/config.h"

namespace trellis::train {

// Writes the tag below `root`; returns its folder. Optimizer state is written where the source has all of it. Throws
// invalid_argument for a layout that does not fit, or a source that lacks something; then there is no complete tag.
std::filesystem::path reshard(const CheckpointReader&, const StepConfig&, Rank world,
                              const std::filesystem::path& root);

}  // namespace trellis::train
