// Which positions of a sequence a rank of the context axis has. Of 2 x ranks equal stretches it has the one as far from
// the front as it stands in its group, and the one as far from the back: under a causal mask all have the same to do.
#pragma once

#include <cstddef>

#include "train/mesh/mesh.h"

namespace trellis::train {

struct SequencePart {
  std::size_t whole = 0;  // positions of all ranks
  Rank ranks = 1, rank = 0;

  std::size_t count() const { return whole / static_cast<std::size_t>(ranks); }
  // Of one rank, the sequence is one stretch.
  std::size_t stretches() const { return ranks == 1 ? 1 : 2; }
  std::size_t stretch() const { return count() / stretches(); }  // its positions
  std::size_t first_of(std::size_t stretch_number) const {
    return (stretch_number == 0 ? static_cast<std::size_t>(rank) : static_cast<std::size_t>(2 * ranks - 1 - rank)) *
           stretch();
  }
  // The position of what comes i-th here.
  std::size_t position(std::size_t i) const { return first_of(i / stretch()) + i % stretch(); }
};

inline SequencePart sequence_part(std::size_t whole, const MeshShape& s, const Place& p) {
  return {whole, s.context, p.context};
}

}  // namespace trellis::train
