// Verifies schedules too large to write out (100,000 ranks): one program per symmetry class stands for all its ranks.
#pragma once
#include "schedule/algorithms/algorithm.h"
#include "schedule/proof/verify.h"

namespace trellis::schedule {

// Compares `others` with `program` renamed by the symmetry: the same steps in the same order, with the same waits,
// sizes, channels and tags, and with peers renamed. Returns the first difference, or nothing.
std::optional<Fault> find_difference(const Symmetry&, Rank rank, const Program&, Rank other, const Program& others);

struct FoldedReport {
  std::optional<Fault> fault;
  Rank ranks = 0;
  Rank classes = 0;
  std::int64_t steps = 0;                // of the programs that were built
  std::vector<std::string> proved = {};  // what was proved, one sentence each
  bool ok() const { return !fault; }
};

// Proves the algorithm in full on a small machine of the same form, where the folded form must equal the full one. On
// the given machine it checks the local rules of each class, that both ends of transfers match, and that ranks of a
// class are alike, on `samples` ranks and partners per class.
FoldedReport verify_folded(const Algorithm&, const Request&, int samples = 8);

}  // namespace trellis::schedule
