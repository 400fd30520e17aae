#include "train/whole/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "train/whole/check.h"

namespace trellis::train {
namespace {

using schedule::ExecutionGraph;
using schedule::GraphTask;

schedule::Collective collective_of(Exchange::Kind k) {
  switch (k) {
    case Exchange::Kind::reduce_scatter:
      return schedule::Collective::reduce_scatter;
    case Exchange::Kind::all_gather:
      return schedule::Collective::all_gather;
    case Exchange::Kind::all_to_all:
    case Exchange::Kind::all_to_all_v:  // its sizes are priced as expected, alike for all ranks
      return schedule::Collective::all_to_all;
    case Exchange::Kind::shift:
      return schedule::Collective::permute;
    default:
      return schedule::Collective::all_reduce;
  }
}

class Graphing {
 public:
  Graphing(const std::vector<RankStep>& classes, int steps)
      : classes_(classes), steps_(steps), mesh_(classes[0].mesh) {}

  ExecutionGraph run() {
    graph_.name = fmt::format("{}: a training step of {} ranks, as trellis train lays it out", classes_[0].config.name,
                              mesh_.ranks());
    graph_.ranks = mesh_.ranks();
    for (std::size_t c = 0; c < category_count; ++c) {
      const auto category = static_cast<Category>(c);
      graph_.categories.push_back({std::string(name(category)), lasting(category)});
    }
    for (std::size_t p = 0; p < phase_count; ++p) graph_.phases.emplace_back(name(static_cast<Phase>(p)));
    graph_.streams.push_back({"main"});
    graph_.classes.resize(classes_.size());
    for (Rank r = 0; r < mesh_.ranks(); ++r) graph_.classes[class_of(classes_[0].config, mesh_, r)].ranks.push_back(r);
    for (std::size_t c = 0; c < classes_.size(); ++c) add(classes_[c].program, graph_.classes[c]);
    return std::move(graph_);
  }

 private:
  std::uint8_t type_of(DType t) {
    const auto [found, fresh] = types_.try_emplace(t, static_cast<std::uint8_t>(types_.size()));
    if (fresh) graph_.types.push_back({std::string(kernels::name(t)), kernels::size_of(t)});
    return found->second;
  }

  std::uint32_t shape_of(const schedule::OperationShape& shape) {
    const auto [found, fresh] = shapes_.try_emplace(shape, static_cast<std::uint32_t>(graph_.shapes.size()));
    if (fresh) graph_.shapes.push_back(shape);
    return found->second;
  }

  std::uint16_t stream_beside(Axis axis) {
    const auto [found, fresh] = beside_.try_emplace(axis, static_cast<std::uint16_t>(graph_.streams.size()));
    if (fresh) graph_.streams.push_back({fmt::format("beside_{}", name(axis))});
    return found->second;
  }

  std::uint32_t communicator_of(Axis axis) {
    const auto [found, fresh] = axes_.try_emplace(axis, static_cast<std::uint32_t>(axes_.size()));
    if (!fresh) return found->second;
    Groups all = axis == Axis::kv ? mesh_.kv_groups(classes_[0].kv_copies)
                                  : mesh_.groups(axis == Axis::tied ? Axis::pipeline : axis);
    if (axis == Axis::tied)
      for (Group& g : all) g = {g.front(), g.back()};
    graph_.communicators.push_back({std::string(name(axis)), std::move(all)});
    return found->second;
  }

  void add(const StepProgram& program, schedule::RankClass& to) {
    for (const Tensor& t : program.tensors)
      to.tensors.push_back({t.name, type_of(t.type), static_cast<std::uint8_t>(t.category), t.rows, t.columns});
    std::map<int, std::uint32_t> tickets;  // the tasks that have begun
    std::set<int> ahead;                   // tickets that are waited for in the next step
    std::vector<std::uint32_t> awaited;
    std::int64_t last = -1;  // the latest task of the main stream
    for (std::size_t i = 0; i < program.operations.size() * static_cast<std::size_t>(steps_); ++i) {
      const Operation& o = program.operations[i % program.operations.size()];
      if (o.kind == Operation::Kind::wait) {
        const auto begun = tickets.find(o.ticket);
        if (o.ahead) ahead.insert(o.ticket);
        if (o.ahead && begun == tickets.end() && i < program.operations.size()) continue;
        if (begun == tickets.end()) throw std::logic_error(o.name + " waits for what has not begun");
        awaited.push_back(begun->second);
        tickets.erase(begun);
        continue;
      }
      const auto number = static_cast<std::uint32_t>(to.tasks.size());
      GraphTask& t = to.tasks.emplace_back(task_of(program, o));
      t.number = number;
      if (o.ticket == 0) {
        t.after = std::exchange(awaited, {});
        last = number;
      } else {  // it begins when what came before it has ended
        if (last >= 0) t.after.push_back(static_cast<std::uint32_t>(last));
        tickets[o.ticket] = number;
      }
    }
    for (const auto& [ticket, task] : tickets)
      if (!ahead.contains(ticket)) throw std::logic_error(to.tasks[task].name + " is never waited for");
    if (!awaited.empty()) to.tasks.push_back({.name = "wait", .after = std::move(awaited)});
  }

  GraphTask task_of(const StepProgram& program, const Operation& o) {
    GraphTask t{.name = o.name};
    const auto listed = [](const std::vector<TensorId>& from) {
      return std::vector<std::uint32_t>(from.begin(), from.end());
    };
    t.reads = listed(o.reads), t.writes = listed(o.writes);
    if (o.kind == Operation::Kind::compute) {
      t.flops = o.flops, t.bytes = program.bytes_touched(o);
      t.work = {{shape_of(o.shape)}};
      t.phase = static_cast<std::uint8_t>(o.phase);
      return t;
    }
    const Exchange& e = o.exchange;
    const bool send = e.kind == Exchange::Kind::send, receive = e.kind == Exchange::Kind::receive;
    t.kind = send ? GraphTask::Kind::send : receive ? GraphTask::Kind::receive : GraphTask::Kind::collective;
    t.communicator = communicator_of(e.axis);
    t.operation.collective = collective_of(e.kind);
    if (o.ticket != 0) t.stream = stream_beside(e.axis);
    if (e.kind == Exchange::Kind::all_reduce)
      t.reduction = e.factor == 1 ? std::string(kernels::name(e.reduction))
                                  : fmt::format("{} {}", kernels::name(e.reduction), e.factor);
    for (const Transfer& each : e.transfers) t.amounts.push_back({each.count, type_of(each.type)});
    t.operation.peer = send || receive ? e.peer : 0, t.label = e.label;
    t.bytes = program.bytes_exchanged(o);
    // A task's bytes are those of its larger buffer, which has all ranks' shards, except with all_reduce and shift.
    const bool of_one = e.kind == Exchange::Kind::all_reduce || e.kind == Exchange::Kind::shift;
    if (t.kind == GraphTask::Kind::collective && !of_one)
      t.bytes *= static_cast<double>(graph_.communicators[t.communicator].groups[0].size());
    return t;
  }

  const std::vector<RankStep>& classes_;
  int steps_;
  const Mesh& mesh_;
  ExecutionGraph graph_;
  std::map<DType, std::uint8_t> types_;
  std::map<schedule::OperationShape, std::uint32_t> shapes_;
  std::map<Axis, std::uint16_t> beside_;
  std::map<Axis, std::uint32_t> axes_;
};

}  // namespace

ExecutionGraph graph_of(const std::vector<RankStep>& classes, int steps) { return Graphing(classes, steps).run(); }

}  // namespace trellis::train
