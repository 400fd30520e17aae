// A schedule for a hundred thousand ranks is never written out: one program of each class of like ranks stands for all.
#pragma once
#include "schedule/algorithm.h"
#include "schedule/verify.h"

namespace trellis::schedule {

// Whether `other`'s program is `rank`'s with the names changed as the symmetry says: the same steps in the same order
// with the same waits, sizes, channels and tags, and peers renamed. Else where they first differ.
std::optional<Fault> find_difference(const Symmetry&, Rank rank, const Program&, Rank other, const Program& others);

struct FoldedReport {
  std::optional<Fault> fault;
  Rank ranks = 0;
  Rank classes = 0;
  std::int64_t steps = 0;                // in the programs that were made
  std::vector<std::string> proved = {};  // what was shown, a sentence each
  bool ok() const { return !fault; }
};

// Proves the same algorithm in full on a small machine of the same form, where the folded form must agree with the
// written-out one; and on this machine the local rules of each class, that ends meet, and that ranks of a class are
// alike, by looking at `samples` ranks and partners of each.
FoldedReport verify_folded(const Algorithm&, const Request&, int samples = 8);

}  // namespace trellis::schedule
