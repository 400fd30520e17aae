// What a workload takes on a simulated machine, and how sure that is: what `trellis sim` and its page show.
#pragma once

#include "sim/cluster/answer/collective_answer.h"
#include "sim/cluster/workload/play.h"

namespace trellis::sim {

struct WorkloadAnswer {
  PlayResult played;  // its time is `forever` when it was interrupted
  UncertaintyInterval interval = {};
  NoisyTimes noisy = {};
  std::string interrupted = {};  // what is missing because the progress monitor stopped it; empty: nothing
};

// Collectives keep the algorithms of the first run, so that neither other figures nor noise change a choice.
WorkloadAnswer answer(const Workload&, const PlayOptions&, const NoiseOptions&, PricingSession&);

}  // namespace trellis::sim
