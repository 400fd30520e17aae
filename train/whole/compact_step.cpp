#include "train/whole/compact_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "train/pipeline/forward_then_backward.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"
#include "train/whole/memory_replay.h"
#include "train/whole/model_flops.h"

namespace trellis::train {
namespace {

using schedule::ExecutionGraph;
using schedule::GraphTask;
using schedule::RankClass;

constexpr std::size_t enough = 3;  // micro-batches: the first, one in between, the last

// By communicator and class: whether ranks of other classes are in its groups.
std::vector<std::vector<bool>> shared_with_others(const ExecutionGraph& graph) {
  std::vector<std::uint32_t> of(static_cast<std::size_t>(graph.ranks), 0);
  for (std::uint32_t c = 0; c < graph.classes.size(); ++c)
    for (Rank r : graph.classes[c].ranks) of[static_cast<std::size_t>(r)] = c;
  std::vector<std::vector<bool>> shared;
  for (const schedule::GraphCommunicator& communicator : graph.communicators) {
    auto& own = shared.emplace_back(graph.classes.size(), communicator.groups.empty() && graph.classes.size() > 1);
    for (const auto& group : communicator.groups) {
      const auto class_of = [&](Rank r) { return of[static_cast<std::size_t>(r)]; };
      if (std::ranges::all_of(group, [&](Rank r) { return class_of(r) == class_of(group[0]); })) continue;
      for (Rank r : group) own[class_of(r)] = true;
    }
  }
  return shared;
}

// A class's step whose micro-batches come in turn, cut into ranges of tasks: those before the slots, each slot, and
// those after them. Operations that are waits are no tasks.
class LaidOut {
 public:
  LaidOut(const RankStep& step, const ExecutionGraph& graph, std::size_t of,
          const std::vector<std::vector<bool>>& shared, std::size_t micro_batches)
      : tasks_(graph.classes[of].tasks), shared_(shared), of_(of), memory_(graph, graph.classes[of]) {
    std::vector<std::uint32_t> before{0};
    for (const Operation& o : step.program.operations)
      before.push_back(before.back() + (o.kind == Operation::Kind::wait ? 0 : 1));
    std::uint32_t end = 0;
    const auto add = [&](std::uint32_t until) { ranges_.push_back({end, until}), end = until; };
    add(step.slots.empty() ? 0 : before[step.slots.front().first]);
    for (const SlotOperations& s : step.slots) {
      of_slots_[{s.slot.action, s.slot.chunk}].push_back(ranges_.size());
      add(before[s.end]);
    }
    add(static_cast<std::uint32_t>(tasks_.size()));
    for (std::size_t i = 0; i < ranges_.size(); ++i)
      stretches_.push_back(i > 0 && i + 1 < ranges_.size() ? stretch(i) : nullptr);
    std::vector<std::uint32_t> inputs;  // of the micro-batch in between; every micro-batch has its own
    for (const auto* list : {&step.tokens, &step.labels, &step.types, &step.next, &step.starts, &step.counted})
      if (list->size() > 1) inputs.push_back(static_cast<std::uint32_t>((*list)[1]));
    for (std::uint32_t t : inputs) bytes_.input += static_cast<std::int64_t>(graph.bytes(graph.classes[of].tensors[t]));
    memory_.find(ranges_, inputs, micro_batches - step.micro_batches);
    bytes_.lasting = memory_.now();
    for (const Category c : {Category::master, Category::moment})
      bytes_.optimizer += memory_.now(static_cast<std::size_t>(c));
    for (const auto& [slot, alike] : of_slots_)
      if (slot.second == 0)
        bytes_.slots[slot.first] = {memory_.bytes_of(alike[0]), memory_.bytes_of(alike[alike.size() / 2]),
                                    memory_.bytes_of(alike.back())};
    main_before_.resize(tasks_.size(), -1);
    for (std::size_t t = 1; t < tasks_.size(); ++t)
      main_before_[t] = tasks_[t - 1].stream == 0 ? static_cast<std::int64_t>(t) - 1 : main_before_[t - 1];
  }

  const std::vector<GraphTask>& tasks() const { return tasks_; }
  const std::vector<TaskRange>& ranges() const { return ranges_; }
  const schedule::RepeatedTaskStretches::Tasks& stretch_of(std::size_t range) const { return stretches_[range]; }
  const MemoryReplay& memory() const { return memory_; }
  const StageBytes& bytes() const { return bytes_; }
  std::int64_t main_before(std::uint32_t task) const { return main_before_[task]; }  // -1: none

  // The range that stands for the `time`-th of `all` slots of this kind on a rank, counted from 0: the first, the last,
  // or the one in between.
  std::size_t range_of(const Slot& slot, std::size_t time, std::size_t all) const {
    const auto& alike = of_slots_.at({slot.action, slot.chunk});
    if (time == 0) return alike[0];
    return time + 1 == all ? alike.back() : alike[std::min<std::size_t>(1, alike.size() - 1)];
  }

 private:
  // The range's tasks, to be run as one task. Null if they can't be: for a single task; where there are messages or
  // other classes take part; where the main stream waits for what began before the range; and where the range does not
  // wait for what it begins beside the main stream.
  schedule::RepeatedTaskStretches::Tasks stretch(std::size_t number) const {
    const TaskRange& range = ranges_[number];
    if (range.end < range.first + 2) return nullptr;
    std::vector<GraphTask> own(tasks_.begin() + range.first, tasks_.begin() + range.end);
    std::vector<bool> awaited(own.size(), false);
    for (GraphTask& t : own) {
      const bool collective = t.kind == GraphTask::Kind::collective;
      if (t.kind != GraphTask::Kind::compute && (!collective || shared_[t.communicator][of_])) return nullptr;
      t.reads.clear(), t.writes.clear();
      if (t.stream != 0) std::erase_if(t.after, [&](std::uint32_t before) { return before < range.first; });
      for (std::uint32_t& before : t.after) {
        if (before < range.first) return nullptr;
        before -= range.first;
        if (t.stream == 0) awaited[before] = true;
      }
    }
    for (std::size_t i = 0; i < own.size(); ++i)
      if (own[i].stream != 0 && !awaited[i]) return nullptr;
    return std::make_shared<const std::vector<GraphTask>>(std::move(own));
  }

  const std::vector<GraphTask>& tasks_;
  const std::vector<std::vector<bool>>& shared_;
  std::size_t of_;
  std::vector<TaskRange> ranges_;
  std::map<std::pair<Action, std::int32_t>, std::vector<std::size_t>> of_slots_;
  std::vector<schedule::RepeatedTaskStretches::Tasks> stretches_;  // by range; null: see stretch()
  MemoryReplay memory_;
  StageBytes bytes_;
  std::vector<std::int64_t> main_before_;  // of each task: the one before it in the main stream
};

// Writes a class's tasks in the schedule's order.
class Writing {
 public:
  Writing(const LaidOut& laid, std::int32_t pipeline, std::uint32_t of, const PipelineSchedule& order, CompactStep& to)
      : laid_(laid),
        pipeline_(pipeline),
        order_(order),
        to_(to),
        tasks_(to.graph.classes[of].tasks),
        stands_(to.stretches.stands[of]),
        memory_(laid.memory()),
        own_(laid.ranges().size(), -1),
        place_(laid.tasks().size(), 0) {}

  schedule::PeakMemory run() {
    std::map<std::pair<Action, std::int32_t>, std::size_t> times;
    write(0, {});
    for (const Slot& slot : order_.ranks[static_cast<std::size_t>(pipeline_)])
      write(laid_.range_of(slot, times[{slot.action, slot.chunk}]++, to_.micro_batches), slot);
    write(laid_.ranges().size() - 1, {});
    return memory_.peak();
  }

 private:
  // "f1.layer.3.up" -> "f17.layer.3.up"
  static std::string renamed(const std::string& name, const std::optional<Slot>& slot) {
    const std::size_t dot = name.find('.');
    if (!slot || dot == name.npos) return name;
    return fmt::format("{}{}{}", name[0], slot->micro, std::string_view(name).substr(dot));
  }

  void write(std::size_t number, const std::optional<Slot>& slot) {
    const TaskRange& range = laid_.ranges()[number];
    memory_.pass(number, static_cast<std::uint32_t>(tasks_.size()));
    const schedule::RepeatedTaskStretches::Tasks& stretch = laid_.stretch_of(number);
    if (stretch == nullptr) {
      for (std::uint32_t t = range.first; t < range.end; ++t) add(t, slot);
      return;
    }
    if (own_[number] < 0) {
      own_[number] = static_cast<std::int32_t>(to_.stretches.tasks.size());
      to_.stretches.tasks.push_back(stretch);
    }
    const GraphTask& first = stretch->front();
    GraphTask all{.name = fmt::format("{}{}", first.name[0], slot->micro), .phase = first.phase};
    for (const GraphTask& t : *stretch)
      if (t.kind == GraphTask::Kind::compute) all.flops += t.flops;
    std::fill(place_.begin() + range.first, place_.begin() + range.end, static_cast<std::uint32_t>(tasks_.size()));
    put(std::move(all), own_[number]);
  }

  void add(std::uint32_t number, const std::optional<Slot>& slot) {
    GraphTask own = laid_.tasks()[number];
    own.reads.clear(), own.writes.clear();
    own.name = renamed(own.name, slot);
    if (slot && (own.kind == GraphTask::Kind::send || own.kind == GraphTask::Kind::receive)) address(own, *slot);
    // A task beside the main stream waits for the main stream's latest task, which is another one in this order.
    for (std::uint32_t& before : own.after)
      before =
          own.stream != 0 && laid_.main_before(number) == before ? static_cast<std::uint32_t>(last_) : place_[before];
    place_[number] = static_cast<std::uint32_t>(tasks_.size());
    put(std::move(own), -1);
  }

  // Sets peer and label as LayingOut::message() does.
  void address(GraphTask& t, const Slot& slot) const {
    const bool forward = slot.action == Action::send_forward || slot.action == Action::receive_forward;
    const bool send = t.kind == GraphTask::Kind::send;
    const std::int32_t stage = order_.stage_of(pipeline_, slot.chunk), other = forward == send ? stage + 1 : stage - 1;
    t.operation.peer = order_.rank_of(other);
    t.label = (slot.micro * order_.shape.stages() + std::min(stage, other)) * 2 + (forward ? 0 : 1);
  }

  void put(GraphTask t, std::int32_t stretch) {
    t.number = static_cast<std::uint32_t>(tasks_.size());
    if (t.stream == 0) last_ = static_cast<std::int64_t>(t.number);
    tasks_.push_back(std::move(t));
    stands_.push_back(stretch);
  }

  const LaidOut& laid_;
  std::int32_t pipeline_;
  const PipelineSchedule& order_;
  CompactStep& to_;
  std::vector<GraphTask>& tasks_;
  std::vector<std::int32_t>& stands_;
  MemoryReplay memory_;
  std::vector<std::int32_t> own_;     // by range: its stretch; -1: not yet written, or no stretch
  std::vector<std::uint32_t> place_;  // of each task, where it was last written
  std::int64_t last_ = -1;            // the latest task of the main stream
};

// One step of each kind of stage. Inner stages with equally many layers do the same, so one is laid out for all of
// them.
struct Kinds {
  std::vector<RankStep> classes;  // a class that is like an earlier one has no program here
  std::vector<std::size_t> like;  // by class: the class that it is like, or itself
};

Kinds kinds_of(const StepConfig& config, Rank world, const Derived& derived, const PipelineSchedule& turns) {
  Kinds kinds;
  const Mesh mesh(derived.mesh, config.wiring);
  std::map<std::vector<std::size_t>, std::size_t> known;
  for (Rank tensor = 0; tensor < derived.mesh.tensor; ++tensor)
    for (Rank p = 0; p < derived.mesh.pipeline; ++p) {
      const Rank rank = mesh.rank({.pipeline = p, .tensor = tensor});
      const std::size_t of = class_of(config, mesh, rank);
      if (of != kinds.classes.size()) continue;
      std::vector<std::size_t> kind{of / static_cast<std::size_t>(derived.mesh.pipeline)};
      bool alone = !config.recompute_layers.empty();
      for (std::int32_t c = 0; c < turns.shape.chunks; ++c) {
        const std::int32_t stage = turns.stage_of(p, c);
        alone = alone || stage == 0 || stage + 1 == turns.shape.stages();
        kind.push_back(
            static_cast<std::size_t>(std::ranges::count(derived.stage_of_layer, static_cast<std::size_t>(stage))));
        // Whether the rank has the stage before, too: no message is sent between the two.
        kind.push_back(stage > 0 && turns.rank_of(stage - 1) == p);
      }
      const std::size_t like = alone ? of : known.try_emplace(kind, of).first->second;
      kinds.like.push_back(like);
      if (like == of)
        kinds.classes.push_back(lay_out(config, world, rank, StepPurpose::train, 0, &turns));
      else
        kinds.classes.push_back(
            {.config = config, .mesh = mesh, .place = mesh.place(rank), .parameters = Parameters({})});
    }
  return kinds;
}

}  // namespace

CompactStep compact_step(const StepConfig& config, Rank world, bool check) {
  const Derived derived = derive(config, world);
  const PipelineSchedule order = schedule_of(config, derived);
  StepConfig few = config;
  CompactStep out{.shape = derived.mesh,
                  .micro_batches = derived.micro_batches,
                  .laid_out = std::min(enough, derived.micro_batches)};
  few.global_batch_size = out.laid_out * config.micro_batch_size * static_cast<std::size_t>(derived.mesh.data);
  const PipelineSchedule turns = in_turn(order, static_cast<std::int32_t>(out.laid_out));
  const Kinds kinds = kinds_of(few, world, derived, turns);
  if (check) out.fault = check_classes(few, world, kinds.classes, &turns, kinds.like);
  const ExecutionGraph from = graph_of(kinds.classes);
  out.graph = {.name = from.name,
               .ranks = from.ranks,
               .types = from.types,
               .categories = from.categories,
               .streams = from.streams,
               .shapes = from.shapes,
               .phases = from.phases,
               .communicators = from.communicators};
  const auto shared = shared_with_others(from);
  out.stretches.stands.resize(from.classes.size());
  for (const RankClass& c : from.classes) out.graph.classes.push_back({.ranks = c.ranks});
  std::map<std::size_t, LaidOut> laid;  // by the class that others are like
  for (std::uint32_t c = 0; c < from.classes.size(); ++c) {
    const std::size_t like = kinds.like[c];
    const RankStep& step = kinds.classes[like];
    const auto found = laid.try_emplace(like, step, from, like, shared, out.micro_batches).first;
    out.memory.push_back(Writing(found->second, kinds.classes[c].place.pipeline, c, order, out).run());
    if (turns.shape.chunks == 1) out.stages.push_back(found->second.bytes());
    out.flops += model_flops(step) * static_cast<double>(from.classes[c].ranks.size());
  }
  out.flops *= static_cast<double>(out.micro_batches) / static_cast<double>(out.laid_out);
  return out;
}

}  // namespace trellis::train
