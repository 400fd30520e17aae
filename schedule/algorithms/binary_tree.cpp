// Broadcast, reduce and all_reduce over one binary tree, pipelined by segments. Inner ranks send everything twice and
// leaves send nothing, so the bandwidth is half of double_tree's, but a segment needs only one message each way.
#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/patterns/pipelined_tree.h"

namespace trellis::schedule {
namespace {

using enum Collective;

std::vector<PipelinedTree> trees_of(const Request& r) {
  std::vector<PipelinedTree> trees;
  for (std::int32_t lane = 0; lane < r.channels; ++lane) {
    PipelinedTree tree{.ranks = r.ranks(), .size = r.ranks()};
    if (rooted(r.operation.collective)) tree.base = (r.operation.root - tree.top() + 1 + r.ranks()) % r.ranks();
    tree.first = std::int64_t{lane} * r.segments;
    tree.segments = r.segments;
    trees.push_back(tree);
  }
  return trees;
}

const RegisteredAlgorithm registered{{
    .name = "binary_tree",
    .summary = "one pipelined binary tree: log2 latency, few messages",
    .constraint = "any rank count",
    .serves = {all_reduce, broadcast, reduce},
    .pieces = [](const Request& r) { return r.shares(); },
    .build = [](const Request& r, Builder& b) { run_trees(r.operation.collective, b, trees_of(r)); },
    .dims = UseOfDims::none,
}};

}  // namespace
}  // namespace trellis::schedule
