// The proof of a graph: the ends of everything that is exchanged meet in order, kind, type and count, and nobody waits
// in a circle. A transfer happens when all its ends are there (rendezvous), so that no graph depends on buffers.
#pragma once

#include <string>
#include <vector>

#include "schedule/graph/graph.h"

namespace trellis::schedule {

struct TaskEnd {
  std::uint32_t rank_class = 0, task = 0;
};

// Classes that have ranks in the same groups of a communicator: they come to its collectives together.
struct CommunicatorClasses {
  std::vector<std::uint32_t> classes;
  std::vector<std::uint32_t> groups;  // of the communicator
};

struct Matched {
  std::string fault;  // empty, or the class, its task, and what the other end does
  // All that is done, in an order in which it can be: of compute one end, of a message the sender's end first.
  std::vector<std::vector<TaskEnd>> order;
  std::vector<std::vector<CommunicatorClasses>> together;  // by communicator
};

// The k-th collective of a class on a communicator meets the k-th of the other classes there; likewise the messages
// from one member of a group to another.
Matched match(const ExecutionGraph&);

// As text for people: "rank 3", or "ranks 0 to 63".
std::string ranks_words(const std::vector<Rank>&);

}  // namespace trellis::schedule
