#include "schedule/graph/graph_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/graph/match_exchanges.h"
#include "schedule/graph/operation_text.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

class Writing {
 public:
  explicit Writing(const ExecutionGraph& graph) : graph_(graph), matched_(match(graph)) {
    if (!matched_.fault.empty()) text::refuse("{}: {}", graph.name, matched_.fault);
    for (const RankClass& c : graph.classes) names_.emplace_back(c.tasks.size());
    for (std::uint32_t c = 0; c < graph.communicators.size(); ++c) {
      auto& of = in_.emplace_back(graph.classes.size(), 0);
      for (std::uint32_t t = 0; t < matched_.together[c].size(); ++t)
        for (std::uint32_t rank_class : matched_.together[c][t].classes) of[rank_class] = t;
    }
  }

  std::string run() {
    std::string tasks;
    for (const auto& ends : matched_.order) tasks += lines(ends);
    std::string operations;
    for (std::size_t s = 0; s < graph_.shapes.size(); ++s)
      operations += fmt::format("operation o{} {}\n", s, text_of(graph_.shapes[s]));
    return fmt::format("# {}\nranks {}\n{}{}{}", graph_.name, graph_.ranks, groups(), operations, tasks);
  }

 private:
  static std::string listed(const std::vector<Rank>& ranks) { return fmt::format("{}", fmt::join(ranks, ",")); }

  std::string groups() const {
    std::string text;
    for (std::size_t c = 0; c < graph_.classes.size(); ++c)
      text += fmt::format("group class{} {}\n", c, listed(graph_.classes[c].ranks));
    for (std::size_t c = 0; c < graph_.communicators.size(); ++c)
      for (std::size_t t = 0; t < matched_.together[c].size() && !graph_.communicators[c].groups.empty(); ++t) {
        text += fmt::format("group {}", group_name(c, t));
        for (std::uint32_t g : matched_.together[c][t].groups) text += " " + listed(graph_.communicators[c].groups[g]);
        text += "\n";
      }
    return text;
  }

  std::string group_name(std::size_t communicator, std::size_t together) const {
    const std::string& name = graph_.communicators[communicator].name;
    return matched_.together[communicator].size() == 1 ? name : fmt::format("{}{}", name, together);
  }

  std::string lines(const std::vector<RankClassTask>& ends) {
    const GraphTask& t = graph_.classes[ends[0].rank_class].tasks[ends[0].task];
    const std::string name = fmt::format("{}_{}.{}", t.name, ends[0].rank_class, ++count_);
    std::string rest;
    for (RankClassTask e : ends)
      for (std::uint32_t before : graph_.classes[e.rank_class].tasks[e.task].after)
        rest += " " + names_[e.rank_class][before];
    rest = fmt::format("{}{} stream {}\n", rest.empty() ? "" : " after", rest, graph_.streams[t.stream].name);
    std::string text;
    if (t.kind == GraphTask::Kind::compute) {
      std::string time = t.time > 0 ? fmt::format(" {}ps", t.time) : "";
      for (const RepeatedOperation& w : t.work)
        time += w.count == 1 ? fmt::format(" o{}", w.shape) : fmt::format(" o{}*{}", w.shape, w.count);
      text = fmt::format("compute {}{} {:.0f}FLOP {:.0f}B on class{}{}", name, time, t.flops, t.bytes,
                         ends[0].rank_class, rest);
    } else if (t.kind == GraphTask::Kind::collective) {
      const bool all = graph_.communicators[t.communicator].groups.empty();
      text = fmt::format("{} {}{}{}{}{}", schedule::name(t.operation.collective), name,
                         carries_data(t.operation.collective) ? fmt::format(" {:.0f}B", t.bytes) : "",
                         all ? "" : " on " + group_name(t.communicator, in_[t.communicator][ends[0].rank_class]),
                         t.operation.root > 0 ? fmt::format(" root {}", t.operation.root) : "",
                         t.algorithm.empty() ? rest : fmt::format(" by {}{}", t.algorithm, rest));
    } else {
      const auto [from, to] = ends_of(ends);
      text = fmt::format("send_recv {} {:.0f}B from {} to {}{}", name, t.bytes, listed(from), listed(to), rest);
    }
    for (RankClassTask e : ends) names_[e.rank_class][e.task] = name;
    return text;
  }

  // The ranks at the two ends of a message, in each group that the two classes share.
  std::pair<std::vector<Rank>, std::vector<Rank>> ends_of(const std::vector<RankClassTask>& ends) const {
    const GraphTask &send = graph_.classes[ends[0].rank_class].tasks[ends[0].task],
                    &receive = graph_.classes[ends[1].rank_class].tasks[ends[1].task];
    const GraphCommunicator& c = graph_.communicators[send.communicator];
    if (c.groups.empty()) return {{receive.operation.peer}, {send.operation.peer}};
    std::pair<std::vector<Rank>, std::vector<Rank>> both;
    for (std::uint32_t g : matched_.together[send.communicator][in_[send.communicator][ends[0].rank_class]].groups) {
      both.first.push_back(c.groups[g].at(static_cast<std::size_t>(receive.operation.peer)));
      both.second.push_back(c.groups[g].at(static_cast<std::size_t>(send.operation.peer)));
    }
    return both;
  }

  const ExecutionGraph& graph_;
  MatchResult matched_;
  std::vector<std::vector<std::uint32_t>> in_;   // by communicator and class: index into MatchResult::together
  std::vector<std::vector<std::string>> names_;  // by class and task: the name in its line
  std::int64_t count_ = 0;
};

}  // namespace

std::string graph_text(const ExecutionGraph& graph) { return Writing(graph).run(); }

}  // namespace trellis::schedule
