// Wait-for graph of a job: which rank waits for which, across communicators.
#pragma once

#include <vector>

#include "ccl/diagnosis/evidence.h"

namespace trellis::ccl {

class WaitGraph {
 public:
  explicit WaitGraph(const JobEvidence&);

  const std::vector<RankEvidence>& places(std::size_t communicator) const { return places_[communicator]; }
  const RankEvidence& at(CommunicatorRank n) const { return places_[n.communicator][static_cast<std::size_t>(n.rank)]; }
  std::vector<CommunicatorRank> waiting() const;  // all that are in an operation, split or shrink

  // The nodes that this one waits for. Nodes in the very same operation are left out: it may wait for them too, but
  // that tells nothing.
  std::vector<CommunicatorRank> of(CommunicatorRank) const;
  // The same rank in operations of other communicators.
  std::vector<CommunicatorRank> elsewhere(CommunicatorRank) const;
  // The nodes at the end of the waiting: they wait for nobody.
  std::vector<CommunicatorRank> ends(const std::vector<CommunicatorRank>& from) const;
  // A cycle of nodes in which each waits for the next; empty: none can be reached.
  std::vector<CommunicatorRank> circle(const std::vector<CommunicatorRank>& from) const;
  // Whether the node has a send or receive that the other does not match.
  bool unmatched(CommunicatorRank, CommunicatorRank other) const;

 private:
  std::vector<Rank> missing(const Members&, const RankEvidence& mine, CommunicatorRank) const;

  const JobEvidence& job_;
  std::vector<std::vector<RankEvidence>> places_;
};

}  // namespace trellis::ccl
