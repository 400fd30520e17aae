#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sim/cluster/workload/chakra.h"
#include "sim/cluster/workload/goal.h"

namespace trellis::sim {
namespace {

using Kind = GoalOperation::Kind;

ChakraNode node_of(const GoalOperation& o, std::uint64_t id) {
  ChakraNode node{.id = id, .name = fmt::format("line {}", o.line), .offset = o.line};
  switch (o.kind) {
    case Kind::compute:
      node.type = ChakraNode::Type::compute, node.nanos = static_cast<std::uint64_t>(o.amount);
      if (o.cpu > 0) node.stream = fmt::format("cpu {}", o.cpu);
      break;
    case Kind::send:
      node.type = ChakraNode::Type::send, node.target = o.peer;
      break;
    case Kind::receive:
      node.type = ChakraNode::Type::receive, node.source = o.peer;
      break;
  }
  if (o.kind != Kind::compute) node.comm_size = o.amount, node.tag = o.tag;
  node.after.assign(o.after.begin(), o.after.end());
  return node;
}

}  // namespace

ExecutionGraph goal_graph(const Goal& goal) {
  std::vector<ChakraFile> files;
  std::vector<std::vector<ChakraNode>> nodes;
  for (std::size_t r = 0; r < goal.ranks.size(); ++r) {
    files.push_back({fmt::format("{}, rank {}", goal.name, r), {}, "line"});
    auto& own = nodes.emplace_back();
    for (std::size_t i = 0; i < goal.ranks[r].size(); ++i) {
      const GoalOperation& o = goal.ranks[r][i];
      if (o.kind == Kind::receive && (o.peer < 0 || o.tag < 0))
        throw std::invalid_argument(
            fmt::format("{}: line {}: a receive from any rank or of any tag: expected one of each, or -m loggp",
                        goal.name, o.line));
      own.push_back(node_of(o, i));
    }
    // What begins with another operation waits for what that one waits for.
    for (std::size_t i = 0; i < own.size(); ++i)
      for (const std::uint32_t other : goal.ranks[r][i].with) {
        const auto& before = goal.ranks[r][other].after;
        own[i].after.insert(own[i].after.end(), before.begin(), before.end());
      }
  }
  return graph_of_traces(goal.name, files, std::move(nodes));
}

}  // namespace trellis::sim
