// Which algorithms could serve on a machine, in which shapes, and which is the fastest.
#pragma once

#include <string_view>
#include <vector>

#include "sim/price.h"

namespace trellis::sim {

struct Candidate {
  const schedule::Algorithm* algorithm = nullptr;
  schedule::Request request;
  Time time = 0;
};

// The machine's ranks as the algorithm sees them: where it knows of tori and chips, these; else one row.
std::vector<Rank> usual_dims(std::string_view algorithm, const Machine&, Rank ranks);
std::vector<Candidate> candidates(schedule::Collective, const Machine&, Rank ranks);
std::vector<Candidate> best_first(schedule::Collective, const Machine&, Rank ranks, const PriceOptions&);

}  // namespace trellis::sim
