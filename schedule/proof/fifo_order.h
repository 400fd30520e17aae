// Message order for transports with FIFO queues. A tag only joins a send to its receive; a fabric may deliver in any
// order and match by tag. If messages between two ranks pass through FIFO queues, both ends need one order in which no
// message waits for one behind it. Every schedule without circular waits has such an order, so verify() need not know
// of queues.
#pragma once
#include <tuple>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Sort key of a message in a queue that several channels share.
constexpr std::tuple<std::int32_t, std::int32_t> place_in_queue(std::int32_t channel, std::int32_t tag) {
  return {tag, channel};
}

// Whether the schedule runs unchanged over `queues` FIFO queues per ordered pair of ranks. Channel c uses
// queue c % queues.
bool passes_in_order(const Schedule&, int queues);

struct FifoOrderedSchedule {
  Schedule schedule;  // the same steps over at most `queues` channels, listed and tagged in execution order
  std::vector<std::vector<std::int32_t>> origins;  // by rank, per new step: its index in the original program
};

// Keeps the order of tags if that order can run. Otherwise messages are sorted by the length of the longest chain of
// messages before them. Throws invalid_argument if some step can never start.
FifoOrderedSchedule queued(const Schedule&, int queues);

}  // namespace trellis::schedule
