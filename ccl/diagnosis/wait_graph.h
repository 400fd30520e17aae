// Wait-for graph of a job: which rank waits for which, across communicators.
#pragma once

#include <vector>

#include "ccl/diagnosis/evidence.h"

namespace trellis::ccl {

class WaitGraph {
 public:
  explicit WaitGraph(const JobEvidence&);

  const std::vector<InferredRankState>& places(std::size_t communicator) const { return places_[communicator]; }
  const InferredRankState& at(CommunicatorRank n) const {
    return places_[n.communicator][static_cast<std::size_t>(n.rank)];
  }
  std::vector<CommunicatorRank> waiting() const;  // all with a dump that are in an operation, split or shrink

  // The ranks that this one waits for, except live ones in the very same operation: it may wait for them too, but that
  // explains nothing. If it is in no operation here, elsewhere() of it: that is what keeps it away.
  std::vector<CommunicatorRank> of(CommunicatorRank) const;
  // The same rank in operations of other communicators.
  std::vector<CommunicatorRank> elsewhere(CommunicatorRank) const;
  // Where the waiting that begins at `from` ends: the ranks that others wait for, and that wait for nobody.
  std::vector<CommunicatorRank> ends(const std::vector<CommunicatorRank>& from) const;
  // A cycle of ranks in which each waits for the next, reached from `from`; empty: there is none.
  std::vector<CommunicatorRank> circle(const std::vector<CommunicatorRank>& from) const;
  // Whether the rank waits in a send or receive that the other rank does not match.
  bool unmatched(CommunicatorRank, CommunicatorRank other) const;

 private:
  std::vector<Rank> missing(const CommunicatorEvidence&, const InferredRankState& mine, CommunicatorRank) const;

  const JobEvidence& job_;
  std::vector<std::vector<InferredRankState>> places_;
};

}  // namespace trellis::ccl
