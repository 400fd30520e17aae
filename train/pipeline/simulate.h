// Runs a pipeline schedule in simulated time: does it end, how long does it take, how much is alive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/pipeline/schedule.h"

namespace trellis::train {

// rendezvous: a message completes when sender and receiver have both reached it, and takes no time. buffered: the
// sender goes on at once. free: for schedules without messages: what is needed is there as soon as it is made.
enum class MessageMode : std::uint8_t { rendezvous, buffered, free };

struct PipelineTiming {
  std::string fault;  // empty: all slots were done; or which ranks wait for what, or what is missing
  std::int64_t end = 0;
  std::vector<std::vector<std::int64_t>> starts, ends;  // of each slot
  std::vector<std::int64_t> busy;                       // of each rank
  // The most stages' activations alive at a time on each rank: from their forward pass to the end of their backward
  // pass, the weight's half included.
  std::vector<std::int32_t> live;

  double bubble() const;  // idle time over busy time, of all ranks together
};

PipelineTiming simulate(const PipelineSchedule&, const StageCosts& = {}, MessageMode = MessageMode::rendezvous);
PipelineTiming simulate_uneven(const PipelineSchedule&, const std::vector<StageCosts>& of_stages, MessageMode);

}  // namespace trellis::train
