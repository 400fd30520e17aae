// Proves a graph: the ends of every collective and message agree in order, kind, type and count, and there is no
// circular wait. A transfer happens when all its ends are there (rendezvous), so that no graph depends on buffers.
#pragma once

#include <string>
#include <vector>

#include "schedule/graph/execution_graph.h"

namespace trellis::schedule {

struct RankClassTask {
  std::uint32_t rank_class = 0, task = 0;
};

// Classes that have ranks in the same groups of a communicator: they take part in its collectives together.
struct CommunicatorClasses {
  std::vector<std::uint32_t> classes;
  std::vector<std::uint32_t> groups;  // of the communicator
};

struct MatchResult {
  std::string fault;  // empty, or the class, its task, and what the other end does
  // All tasks, in an order in which they can run. Each entry has the tasks that happen together: one computation, or
  // all ends of a collective or message, of a message the sender's first.
  std::vector<std::vector<RankClassTask>> order;
  std::vector<std::vector<CommunicatorClasses>> together;  // by communicator
};

// The k-th collective of a class on a communicator meets the k-th of the other classes there; likewise the messages
// from one member of a group to another.
MatchResult match(const ExecutionGraph&);

// As text for people: "rank 3", or "ranks 0 to 63".
std::string ranks_words(const std::vector<Rank>&);

}  // namespace trellis::schedule
