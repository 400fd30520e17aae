// Turns ranks and their operations into text.
#pragma once

#include <string>
#include <vector>

#include "ccl/diagnosis/wait_graph.h"

namespace trellis::ccl {

std::string list_of(std::vector<Rank>);  // "ranks 0, 2"

class Wording {
 public:
  explicit Wording(const JobEvidence&);

  // Ranks are numbered as in the communicator that all others were split from.
  std::string ranks(const std::vector<CommunicatorRank>&) const;
  // "operation 6, all_reduce of 4 f32, sum", "a split after operation 5"; with the communicator, if there are several.
  std::string where(std::size_t communicator, const DumpedEntry&) const;
  std::string after(std::size_t communicator, const DumpedEntry& last) const;  // "after operation 5"
  std::string name(std::size_t communicator) const;                            // "communicator 01234567 of 4 ranks"

 private:
  const JobEvidence& job_;
  std::size_t main_ = 0;
};

}  // namespace trellis::ccl
