// The ways of doing a collective that are in the running where nobody says which.
#pragma once

#include <string_view>
#include <vector>

#include "sim/tuner.h"

namespace trellis::sim {

// The machine's ranks as the algorithm sees them: where it knows of tori and chips, these; else one row.
std::vector<Rank> usual_dims(std::string_view algorithm, const Machine&, Rank ranks);
// Every algorithm that serves it, in one row and in the machine's shapes, with several lanes; and in segments, where
// these are a pipeline and none of them is empty.
std::vector<Way> usual_ways(const Pricer&, double bytes);

}  // namespace trellis::sim
