#include "sim/cluster/workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "schedule/graph/match_exchanges.h"
#include "sim/hardware/figures/figure_units.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

using schedule::GraphTask;
using schedule::RankClassTask;

class Spreading {
 public:
  explicit Spreading(std::shared_ptr<const ExecutionGraph> graph) : graph_(*graph), matched_(match(*graph)) {
    if (!matched_.fault.empty()) text::refuse("{}: {}", graph->name, matched_.fault);
    out_.graph = std::move(graph);
  }

  Workload run() {
    find_cells();
    return spread();
  }

  // The folded workload: each class is one cell.
  std::optional<Workload> folded() {
    if (graph_.classes.size() == static_cast<std::size_t>(graph_.ranks)) return {};
    out_.folded = true;
    cell_of_.assign(static_cast<std::size_t>(graph_.ranks), 0);
    for (std::uint32_t c = 0; c < graph_.classes.size(); ++c) {
      out_.cells.push_back({graph_.classes[c].ranks});
      cells_of_.push_back({c}), class_of_cell_.push_back(c), local_.push_back(0);
      for (Rank r : graph_.classes[c].ranks) cell_of_[static_cast<std::size_t>(r)] = c;
    }
    if (!groups_are_alike()) return {};
    return spread();
  }

 private:
  Workload spread() {
    for (std::size_t c = 0; c < graph_.classes.size(); ++c)
      part_of_.emplace_back(cells_of_[c].size() * graph_.classes[c].tasks.size());
    for (const auto& ends : matched_.order) place(ends);
    return std::move(out_);
  }

  // Whether groups that do the same collectives consist of the same classes, rank by rank.
  bool groups_are_alike() const {
    for (std::size_t c = 0; c < graph_.communicators.size(); ++c) {
      const auto& groups = graph_.communicators[c].groups;
      for (const schedule::CommunicatorClasses& set : matched_.together[c])
        for (const std::uint32_t g : set.groups)
          if (!groups.empty() && !std::ranges::equal(
                                     groups[g], groups[set.groups.front()], {}, [&](Rank r) { return class_of(r); },
                                     [&](Rank r) { return class_of(r); }))
            return false;
    }
    return true;
  }
  std::uint32_t class_of(Rank r) const { return cell_of_[static_cast<std::size_t>(r)]; }

  const GraphTask& task(RankClassTask e) const { return graph_.classes[e.rank_class].tasks[e.task]; }

  // Ranks of one class in the same groups form a cell.
  void find_cells() {
    cell_of_.assign(static_cast<std::size_t>(graph_.ranks), 0);
    for (std::uint32_t c = 0; c < graph_.classes.size(); ++c)
      for (Rank r : graph_.classes[c].ranks) cell_of_[static_cast<std::size_t>(r)] = c;
    const std::vector<std::uint32_t> class_of = cell_of_;
    for (const schedule::GraphCommunicator& c : graph_.communicators) split_by(c.groups);
    std::map<std::uint32_t, std::uint32_t> numbers;  // in the order of their lowest ranks
    cells_of_.resize(graph_.classes.size());
    for (std::size_t r = 0; r < cell_of_.size(); ++r) {
      const auto [found, fresh] = numbers.try_emplace(cell_of_[r], static_cast<std::uint32_t>(out_.cells.size()));
      if (fresh) {
        out_.cells.emplace_back();
        local_.push_back(static_cast<std::uint32_t>(cells_of_[class_of[r]].size()));
        cells_of_[class_of[r]].push_back(found->second);
      }
      cell_of_[r] = found->second;
      out_.cells[found->second].ranks.push_back(static_cast<Rank>(r));
    }
    class_of_cell_.resize(out_.cells.size());
    for (std::uint32_t c = 0; c < cells_of_.size(); ++c)
      for (std::uint32_t cell : cells_of_[c]) class_of_cell_[cell] = c;
  }

  void split_by(const std::vector<std::vector<Rank>>& groups) {
    std::vector<std::uint32_t> place(cell_of_.size(), 0);
    for (std::uint32_t g = 0; g < groups.size(); ++g)
      for (Rank r : groups[g]) place[static_cast<std::size_t>(r)] = g + 1;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> split;
    for (std::size_t r = 0; r < cell_of_.size(); ++r)
      cell_of_[r] = split.try_emplace({cell_of_[r], place[r]}, static_cast<std::uint32_t>(split.size())).first->second;
  }

  void place(const std::vector<RankClassTask>& ends) {
    const GraphTask& t = task(ends[0]);
    WorkloadTask part{.task = &t, .computes = t.kind == GraphTask::Kind::compute};
    if (part.computes) {
      for (std::uint32_t cell : cells_of_[ends[0].rank_class]) {
        part.cells = {cell};
        add(ends, part);
      }
      return;
    }
    const bool message = t.kind != GraphTask::Kind::collective;
    if (out_.folded) {
      part.groups = groups_of(ends, message);
      if (!part.groups->front().empty()) part.members = part.groups->front();
      if (part.groups->size() == 1) part.groups = nullptr;
      return place_among(ends, std::move(part));
    }
    const auto& groups = graph_.communicators[t.communicator].groups;
    for (std::uint32_t g : groups_of(ends[0])) {
      part.members = groups.empty() ? std::vector<Rank>{} : groups[g];
      if (message) part.members = ends_of(ends, part.members);
      place_among(ends, part);
    }
  }

  void place_among(const std::vector<RankClassTask>& ends, WorkloadTask part) {
    if (part.members.empty()) {
      for (std::uint32_t c = 0; c < out_.cells.size(); ++c) part.cells.push_back(c);
    } else {
      for (Rank r : part.members) part.cells.push_back(cell_of_[static_cast<std::size_t>(r)]);
      std::ranges::sort(part.cells);
      part.cells.erase(std::unique(part.cells.begin(), part.cells.end()), part.cells.end());
    }
    add(ends, std::move(part));
  }

  // The ranks of each group that takes part. Parts with the same groups of a communicator share one list.
  std::shared_ptr<const std::vector<std::vector<Rank>>> groups_of(const std::vector<RankClassTask>& ends,
                                                                  bool message) {
    const GraphTask& t = task(ends[0]);
    const std::vector<std::uint32_t>& numbers = groups_of(ends[0]);
    auto& known =
        groups_kept_[{t.communicator, numbers.front(), message ? task(ends[1]).operation.peer : -1, t.operation.peer}];
    if (known) return known;
    const auto& groups = graph_.communicators[t.communicator].groups;
    auto all = std::make_shared<std::vector<std::vector<Rank>>>();
    for (const std::uint32_t g : numbers) {
      all->push_back(groups.empty() ? std::vector<Rank>{} : groups[g]);
      if (message) all->back() = ends_of(ends, all->back());
    }
    return known = std::move(all);
  }

  std::vector<Rank> ends_of(const std::vector<RankClassTask>& ends, const std::vector<Rank>& group) const {
    return {member(group, task(ends[1]).operation.peer), member(group, task(ends[0]).operation.peer)};
  }

  static Rank member(const std::vector<Rank>& group, Rank place) {
    return group.empty() ? place : group.at(static_cast<std::size_t>(place));
  }

  const std::vector<std::uint32_t>& groups_of(RankClassTask e) const {
    for (const auto& set : matched_.together[task(e).communicator])
      if (std::ranges::binary_search(set.classes, e.rank_class)) return set.groups;
    throw std::logic_error("a matched task on no group");
  }

  void add(const std::vector<RankClassTask>& ends, WorkloadTask part) {
    const auto number = static_cast<std::uint32_t>(out_.parts.size());
    for (std::uint32_t cell : part.cells) {
      const std::uint32_t of = class_of_cell_[cell];
      const auto end = std::ranges::find(ends, of, &RankClassTask::rank_class);
      const std::size_t cells = cells_of_[of].size();
      const GraphTask& own = task(*end);
      for (std::uint32_t before : own.after) part.after.push_back(part_of_[of][before * cells + local_[cell]]);
      part_of_[of][end->task * cells + local_[cell]] = number;
      if (!graph_.streams[own.stream].ordered) continue;
      const auto [last, fresh] = last_of_stream_.try_emplace({cell, own.stream}, number);
      if (!fresh) part.after.push_back(last->second);
      last->second = number;
    }
    std::ranges::sort(part.after);
    part.after.erase(std::unique(part.after.begin(), part.after.end()), part.after.end());
    out_.parts.push_back(std::move(part));
  }

  const ExecutionGraph& graph_;
  schedule::MatchResult matched_;
  Workload out_;
  std::vector<std::uint32_t> cell_of_;                // by rank
  std::vector<std::vector<std::uint32_t>> cells_of_;  // by class
  std::vector<std::uint32_t> class_of_cell_, local_;  // by cell: its class, and its number in the class
  std::vector<std::vector<std::uint32_t>> part_of_;   // by class: the part of each task and cell of the class
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint32_t> last_of_stream_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, Rank, Rank>,
           std::shared_ptr<const std::vector<std::vector<Rank>>>>
      groups_kept_;  // by communicator, its first group, and a message's ends
};

}  // namespace

schedule::CollectiveOperation WorkloadTask::operation() const {
  if (task->kind != GraphTask::Kind::collective) return {.collective = schedule::Collective::send_recv, .peer = 1};
  return task->operation;
}

Workload workload_of(std::shared_ptr<const ExecutionGraph> graph) { return Spreading(std::move(graph)).run(); }

Workload workload_of(ExecutionGraph graph) {
  return workload_of(std::make_shared<const ExecutionGraph>(std::move(graph)));
}

std::optional<Workload> folded_workload_of(std::shared_ptr<const ExecutionGraph> graph) {
  return Spreading(std::move(graph)).folded();
}

std::shared_ptr<const ExecutionGraph> lent(const ExecutionGraph& graph) { return {std::shared_ptr<void>(), &graph}; }

std::string text(const Workload& workload, const WorkloadTask& part) {
  const GraphTask& task = *part.task;
  if (part.computes) return task.name;
  const auto size = part.members.empty() ? workload.graph->ranks : static_cast<Rank>(part.members.size());
  const Unit& unit = unit_for(task.bytes, Dimension::bytes);
  return fmt::format("{} of {}{} among {}", name(part.operation().collective), spelled(task.bytes, unit).value_or("?"),
                     unit.name, size);
}

}  // namespace trellis::sim
