// Wait-for graph of a job: which rank waits for which, across communicators.
#pragma once

#include <vector>

#include "ccl/diagnosis/evidence.h"

namespace trellis::ccl {

class Waits {
 public:
  explicit Waits(const JobEvidence&);

  const std::vector<RankEvidence>& places(std::size_t communicator) const { return places_[communicator]; }
  const RankEvidence& at(Node n) const { return places_[n.communicator][static_cast<std::size_t>(n.rank)]; }
  std::vector<Node> waiting() const;  // all that are in an operation, split or shrink

  // The nodes that this one waits for. Nodes in the very same operation are left out: it may wait for them too, but
  // that tells nothing.
  std::vector<Node> of(Node) const;
  // The same rank in operations of other communicators.
  std::vector<Node> elsewhere(Node) const;
  // The nodes at the end of the waiting: they wait for nobody.
  std::vector<Node> ends(const std::vector<Node>& from) const;
  // A cycle of nodes in which each waits for the next; empty: none can be reached.
  std::vector<Node> circle(const std::vector<Node>& from) const;
  // Whether the node has a send or receive that the other does not match.
  bool unmatched(Node, Node other) const;

 private:
  std::vector<Rank> missing(const Members&, const RankEvidence& mine, Node) const;

  const JobEvidence& job_;
  std::vector<std::vector<RankEvidence>> places_;
};

}  // namespace trellis::ccl
