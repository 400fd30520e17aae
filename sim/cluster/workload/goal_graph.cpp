#include <fmt/format.h>

#include <algorithm>

#include "sim/cluster/workload/chakra.h"
#include "sim/cluster/workload/loggopsim_goal.h"
#include "text/refuse.h"

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

[[noreturn]] void refuse(const GoalProgram& goal, const GoalOperation& o, std::string_view why) {
  text::refuse("{}: line {}: {}", goal.name, o.line, why);
}

// A rank's operations in an order in which each comes after those with which it begins.
std::vector<std::uint32_t> in_order_of_begins(const GoalProgram& goal, const std::vector<GoalOperation>& all) {
  std::vector<std::vector<std::uint32_t>> next(all.size());
  std::vector<std::size_t> left(all.size());
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    left[i] = all[i].with.size();
    for (const std::uint32_t other : all[i].with) next[other].push_back(i);
    if (left[i] == 0) order.push_back(i);
  }
  for (std::size_t at = 0; at < order.size(); ++at)
    for (const std::uint32_t i : next[order[at]])
      if (--left[i] == 0) order.push_back(i);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (left[i] > 0) refuse(goal, all[i], "waits for itself, by way of others");
  return order;
}

// What begins with another operation waits for what that one waits for, and so on along a chain of such operations.
void add_begins(const GoalProgram& goal, const std::vector<GoalOperation>& all, std::vector<ChakraNode>& own) {
  constexpr std::size_t most = std::size_t{1} << 26;
  std::size_t sum = 0;
  for (const std::uint32_t i : in_order_of_begins(goal, all)) {
    std::vector<std::uint64_t>& after = own[i].after;
    for (const std::uint32_t other : all[i].with)
      after.insert(after.end(), own[other].after.begin(), own[other].after.end());
    if (all[i].with.empty()) continue;
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    sum += after.size();
    if (sum > most) refuse(goal, all[i], "begins with others that wait for too many");
  }
}

}  // namespace

ExecutionGraph goal_graph(const GoalProgram& goal) {
  std::vector<ChakraFile> files;
  std::vector<std::vector<ChakraNode>> nodes;
  for (std::size_t r = 0; r < goal.ranks.size(); ++r) {
    files.push_back({fmt::format("{}, rank {}", goal.name, r), {}, "line"});
    auto& own = nodes.emplace_back();
    for (std::size_t i = 0; i < goal.ranks[r].size(); ++i) {
      const GoalOperation& o = goal.ranks[r][i];
      if (o.kind == Kind::receive && (o.peer < 0 || o.tag < 0))
        refuse(goal, o, "a receive from any rank or of any tag: expected one of each, or -m loggp");
      own.push_back(node_of(o, i));
    }
    add_begins(goal, goal.ranks[r], own);
  }
  return graph_of_traces(goal.name, files, std::move(nodes));
}

}  // namespace trellis::sim
