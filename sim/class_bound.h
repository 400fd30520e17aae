// What a schedule takes at least by the steps of one rank of each class: its longest chain through all ranks, where
// each transfer is as short as the shortest of its class, and what it moves over each resource. Ranks of a class that
// lie differently in the machine are not gone through one by one, so that it is far less work than a run.
#pragma once

#include "sim/price.h"

namespace trellis::sim {

// The pattern is one whose chunks are not told apart; with fewer elements than chunks these may all be empty.
// `forever`: it is more than the limit.
Time least_by_classes(const Pattern&, const Machine&, const PriceOptions&, Time limit = forever);

}  // namespace trellis::sim
