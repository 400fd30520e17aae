// How the ranks of a communicator lie on their hosts.
#pragma once

#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

// {8, 3} is three hosts of eight ranks each. One dimension: the ranks share one host, each has its own, or hosts have
// different numbers of ranks.
struct HostShape {
  std::vector<Rank> dims = {};
  std::vector<Rank> numbering = {};  // the ranks, host after host; empty: they are in that order
};

// `host`: by rank, the number of the first rank on its host.
HostShape shape_of(const std::vector<Rank>& host);

}  // namespace trellis::ccl
