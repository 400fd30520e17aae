// The earliest round of each step, if every transfer took one round and everything else no time; and the cost of a
// schedule in rounds, messages and chunks.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schedule/proof/step_wiring.h"

namespace trellis::tools {

struct StepRounds {
  // By step id. The round of a transfer counts from 1; a local step has the number of rounds before it.
  std::vector<std::int32_t> round;
  std::int32_t rounds = 0;  // transfers in the longest chain
};
// None when some step can never start.
std::optional<StepRounds> step_rounds(const schedule::Schedule&, const schedule::StepWiring&);

// Minimum and maximum over the ranks.
struct MinMax {
  std::int64_t least = 0, most = 0;
  void count(std::int64_t n, bool first);
  std::string text() const;  // "6", "1 to 15"
};

struct ScheduleSummary {
  schedule::Rank ranks = 0;
  std::int64_t steps = 0;
  std::int64_t transfers = 0;
  std::int32_t rounds = -1;  // -1: the schedule can't be followed
  MinMax messages;           // sent by a rank
  MinMax chunks;             // sent by a rank
  MinMax scratch;            // chunks of scratch that a rank needs
};
ScheduleSummary summary(const schedule::Schedule&);
void count_sent(const schedule::Program&, std::int64_t& messages, std::int64_t& chunks);

}  // namespace trellis::tools
