// Two binary trees with half of the data each (Sanders, Speck, Traeff). Inner ranks of one tree are leaves of the
// other, so every rank sends and receives each byte about once, and at full rate once the pipeline of segments is full.
#include <fmt/format.h>

#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/patterns/pipelined_tree.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// The trees' numberings differ by one, so even and odd numbers (inner ranks and leaves) change places. A root stands
// above both trees and feeds each its half. A root inside one tree would have more to send than the others.
std::vector<PipelinedTree> trees_of(const Request& r) {
  const bool above = rooted(r.operation.collective);
  std::vector<PipelinedTree> trees;
  for (std::int32_t lane = 0; lane < 2 * r.channels; ++lane) {
    PipelinedTree tree{.ranks = r.ranks(), .size = above ? r.ranks() - 1 : r.ranks()};
    tree.base = above ? (r.operation.root + 1) % r.ranks() : 0;
    tree.shift = lane % 2 == 0 ? 0 : tree.size - 1;
    tree.first = std::int64_t{lane} * r.segments;
    tree.segments = r.segments;
    trees.push_back(tree);
  }
  return trees;
}

std::string refuses(const Request& r) {
  if (2 * r.channels > most_channels)
    return fmt::format("{} channels of two trees each: expected at most {}", r.channels, most_channels / 2);
  return "";
}

const RegisteredAlgorithm registered{{
    .name = "double_tree",
    .summary = "two pipelined binary trees whose inner ranks differ: log2 latency at nearly full rate",
    .constraint = "any rank count; many segments where there is much data",
    .serves = {all_reduce, broadcast, reduce},
    .refuses = refuses,
    .pieces = [](const Request& r) { return 2 * r.shares(); },
    .build = [](const Request& r, Builder& b) { run_trees(r.operation.collective, b, trees_of(r)); },
    .dims = UseOfDims::none,
}};

}  // namespace
}  // namespace trellis::schedule
