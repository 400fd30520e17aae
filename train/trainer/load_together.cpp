#include "train/trainer/load_together.h"

#include "train/checkpoint/save_load.h"
#include "train/trainer/agreement.h"

namespace trellis::train {

OpenedTogether open_together(ccl::Communicator& world, const std::filesystem::path& from) {
  OpenedTogether opened;
  opened.fault = first_fault(world, fault_of([&] { opened.source = std::make_unique<CheckpointReader>(from); }));
  return opened;
}

LoadedTogether load_together(ccl::Communicator& world, Job& job, const CheckpointReader& source, bool state) {
  LoadedTogether loaded;
  loaded.state = !any_rank(world, !state || !has_state(job.step(), source));
  loaded.fault = first_fault(world, fault_of([&] { load(job, source, loaded.state); }));
  return loaded;
}

}  // namespace trellis::train
