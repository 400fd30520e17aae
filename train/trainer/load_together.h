// Loads a checkpoint on all ranks of a world, or tells all of them why not. Every rank calls these.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "ccl/communicator.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/whole/job.h"

namespace trellis::train {

struct OpenedTogether {
  std::unique_ptr<CheckpointReader> source;
  std::string fault;  // of the first rank that has one, on every rank
};
OpenedTogether open_together(ccl::Communicator&, const std::filesystem::path&);

struct LoadedTogether {
  bool state = false;  // moments were loaded, too: on every rank, where the source has those of all ranks
  std::string fault;   // of the first rank that has one; what the job then holds is partly what it held before
};
LoadedTogether load_together(ccl::Communicator&, Job&, const CheckpointReader&, bool state = true);

}  // namespace trellis::train
