// How the ranks of a communicator lie on their hosts.
#pragma once

#include <cstdint>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

// Ranks are numbered along the dimensions. {8, 3} is three hosts of eight ranks each; {3, 8} in the order {1, 0} the
// same, the ranks being dealt out to the hosts by turns. One dimension: all are alike, or lie irregularly.
struct Shape {
  std::vector<Rank> dims = {};
  std::vector<std::int32_t> order = {};  // of the dimensions, those within a host first; empty: as they are
};

// `host`: by rank, the number of the first rank on its host.
Shape shape_of(const std::vector<Rank>& host);

}  // namespace trellis::ccl
