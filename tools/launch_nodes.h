// What the launches of a job's nodes tell each other: that all are there, that the job ends, that a node is through.
#pragma once

#include <memory>
#include <string>

#include "tools/launch_ranks.h"

namespace trellis::tools {

// How a job ended.
struct JobEnd {
  int status = 0;  // 0: it has not
  std::string why = {};
};

// They meet at a store that node 0's keeps, behind the ports that ranks may use.
class Nodes {
 public:
  // Goes to look for the others, in a thread of its own. Throws system_error when node 0 can't listen.
  explicit Nodes(const LaunchedJob&);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  int news() const;    // a descriptor: readable when one of these has changed
  void heard() const;  // that it has
  bool all_here() const;
  JobEnd ended() const;     // elsewhere, or as the others could not be found or are gone
  bool settled() const;     // this node may leave: on node 0, when all others have
  void end(const JobEnd&);  // on every node
  void done();              // nothing more will be told from here

 private:
  struct Shared;
  static void meet(Shared&);
  static void watch(Shared&);
  static void run(const std::shared_ptr<Shared>&);

  std::shared_ptr<Shared> shared_;
};

}  // namespace trellis::tools
