// How the ranks of a communicator lie on their hosts.
#pragma once

#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

// {8, 3} means three hosts of eight ranks each. There is a single dimension, the number of ranks, where all ranks share
// one host, each has a host of its own, or hosts have different numbers of ranks.
struct RanksByHost {
  std::vector<Rank> dims = {};
  std::vector<Rank> numbering = {};  // the ranks sorted by host; empty: they already are
};

// `host` holds, for each rank, the lowest rank on its host.
RanksByHost shape_of(const std::vector<Rank>& host);

}  // namespace trellis::ccl
