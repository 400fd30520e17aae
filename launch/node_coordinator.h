// Coordinates the launches on a job's nodes: each learns that all are present, that the job has ended, and that it may
// leave.
#pragma once

#include <memory>
#include <string>

#include "launch/launch_ranks.h"

namespace trellis::launch {

// How a job ended.
struct JobEnd {
  int status = 0;  // 0: it has not ended
  std::string why = {};
};

// The launches communicate through a key-value store that node 0 serves, on a port after those that ranks may use.
class NodeCoordinator {
 public:
  // Looks for the other nodes in a thread of its own. Throws system_error when node 0 can't listen.
  explicit NodeCoordinator(const LaunchOptions&);
  ~NodeCoordinator();
  NodeCoordinator(const NodeCoordinator&) = delete;
  NodeCoordinator& operator=(const NodeCoordinator&) = delete;

  int news() const;    // a file descriptor, readable when one of the states below has changed
  void heard() const;  // acknowledges the change
  bool all_here() const;
  JobEnd ended() const;     // the job ended on another node, or other nodes were not found or are gone
  bool settled() const;     // this node may leave; on node 0: all others have left
  void end(const JobEnd&);  // ends the job on every node
  void done();              // this node sends nothing more

 private:
  struct Shared;
  static void meet(Shared&);
  static void watch(Shared&);
  static void run(const std::shared_ptr<Shared>&);

  std::shared_ptr<Shared> shared_;
};

}  // namespace trellis::launch
