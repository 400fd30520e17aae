#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "schedule/collective_traits.h"
#include "schedule/formats/mscclpp_json.h"
#include "schedule/formats/mscclpp_json_order.h"
#include "schedule/in_place_slices.h"
#include "schedule/proof/step_wiring.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

using mscclpp::Known;
using mscclpp::PlanChunkRange;
using mscclpp::PlanOperationKind;
using mscclpp::PlanPosition;
using KnownNow = std::shared_ptr<const Known>;

Task task_of(const mscclpp::ExecutionPlan& plan) {
  Task task{.operation = {.in_place = plan.in_place}, .ranks = static_cast<Rank>(plan.gpus.size()), .even = true};
  if (plan.gpus.empty()) throw std::invalid_argument("plan: has no gpus");
  const std::string& name = plan.collective;
  const CollectiveTraits* const known = traits_by_msccl(name);
  if (known == nullptr)
    text::refuse("plan collective: '{}': the plan does not say what must come out, or which gpu is the root",
                 name.substr(0, 40));
  task.operation.collective = known->collective;
  const mscclpp::PlanGpu& first = plan.gpus[0];
  for (const mscclpp::PlanGpu& gpu : plan.gpus)
    if (gpu.inputs != first.inputs || gpu.outputs != first.outputs)
      text::refuse("gpus: {} and {} chunks of input and output here, {} and {} there", first.inputs, first.outputs,
                   gpu.inputs, gpu.outputs);
  const std::int32_t chunks = std::max(first.inputs, first.outputs);
  const std::int32_t blocks = by_block(task.operation.collective) ? task.ranks : 1;
  if (chunks % blocks != 0 || chunks == 0)
    text::refuse("gpus: {} chunks for {} gpus: expected a multiple", chunks, blocks);
  task.pieces = chunks / blocks;
  check(task);
  return task;
}

class Joiner {
 public:
  explicit Joiner(const mscclpp::ExecutionPlan& plan) : plan_(plan), order_(plan) {
    schedule_.task = task_of(plan);
    schedule_.algorithm = plan.name;
    schedule_.programs.resize(plan.gpus.size());
    listed_.resize(plan.gpus.size(), std::vector<std::vector<Listed>>(order_.count()));
    for (std::size_t r = 0; r < plan.gpus.size(); ++r) {
      schedule_.programs[r].scratch = plan.gpus[r].scratch;
      schedule_.channels = std::max(schedule_.channels, static_cast<std::int32_t>(plan.gpus[r].blocks.size()));
    }
  }

  Schedule run() {
    order_.run([&](const PlanPosition& at, const KnownNow& known) { join(at, known); });
    for (Rank r = 0; r < schedule_.ranks(); ++r) check_end(r);
    return std::move(schedule_);
  }

 private:
  struct Listed {  // a step on some gpu, made from an operation of a thread block
    std::int32_t operation, step;
    KnownNow known;
    bool from_outside;
  };
  struct Now {
    PlanPosition at;
    KnownNow known;
  };

  void join(const PlanPosition& at, const KnownNow& known) {
    const mscclpp::PlanOperation& op = plan_.gpus[at.rank].blocks[at.block].operations[at.operation];
    const Now now{at, known};
    switch (op.kind) {
      case PlanOperationKind::copy:
        add(now, at.rank, {.op = Op::copy, .to = slice(op.targets[0]), .from = slice(op.sources[0])}, {});
        break;
      case PlanOperationKind::put:
      case PlanOperationKind::get:
        for (std::size_t i = 0; i < op.sources.size(); ++i)
          transfer(now, op.sources[i], op.targets[i], Op::recv, {}, {});
        break;
      default:
        reduce(now, op);
        break;
    }
  }

  // For each element, all sources are read before the sum is written, and the sum is written locally before remotely.
  void reduce(const Now& now, const mscclpp::PlanOperation& op) {
    const Slice sum = slice(op.targets[0]);
    Slice so_far = slice(op.sources[0]);
    std::vector<std::int32_t> here;                              // the last local step
    std::vector<std::pair<PlanChunkRange, std::int32_t>> there;  // remote chunks read, and their steps
    for (std::size_t i = 1; i < op.sources.size(); ++i) {
      const PlanChunkRange& source = op.sources[i];
      if (source.rank == now.at.rank) {
        const Slice more[] = {slice(source)};
        if (i > 1 && overlap(more[0], sum))
          fail(now.at, "writes over one of its own sources: it is not known in which order");
        here = {add(now, now.at.rank, {.op = Op::reduce, .to = sum, .from = so_far}, here, more)};
      } else {
        const auto [sent, received] = transfer(now, source, op.targets[0], Op::recv_reduce, so_far, here);
        there.emplace_back(source, sent);
        here = {received};
      }
      so_far = sum;
    }
    for (std::size_t i = 1; i < op.targets.size(); ++i) {
      const PlanChunkRange& target = op.targets[i];
      std::vector<std::int32_t> readers;
      for (const auto& [source, step] : there)
        if (source.rank == target.rank && slice(source) == slice(target)) readers.push_back(step);
      transfer(now, op.targets[0], target, Op::recv, {}, here, readers);
    }
  }

  bool overlap(const Slice& a, const Slice& b) const {
    return a.buffer == b.buffer && a.first < std::int64_t{b.first} + b.count &&
           b.first < std::int64_t{a.first} + a.count;
  }

  Slice slice(const PlanChunkRange& c) const { return as_output(schedule_.task, c.rank, {c.first, c.count, c.buffer}); }

  // Adds both ends of a transfer. `here`: preceding steps on the operation's own gpu; `there`: those on the other gpu.
  std::pair<std::int32_t, std::int32_t> transfer(const Now& now, const PlanChunkRange& from, const PlanChunkRange& to,
                                                 Op op, const Slice& adding, const std::vector<std::int32_t>& here,
                                                 const std::vector<std::int32_t>& there = {}) {
    const auto first = [&](Rank r) -> const std::vector<std::int32_t>& { return r == now.at.rank ? here : there; };
    const std::int32_t tag = tags_[{from.rank, to.rank, now.at.block}]++;
    const std::int32_t sent =
        add(now, from.rank, {.op = Op::send, .from = slice(from), .end = {to.rank, tag}}, first(from.rank));
    const std::int32_t received =
        add(now, to.rank, {.op = op, .to = slice(to), .from = adding, .end = {from.rank, tag}}, first(to.rank));
    return {sent, received};
  }

  std::int32_t add(const Now& now, Rank rank, Step step, std::vector<std::int32_t> after,
                   std::span<const Slice> further = {}) {
    Program& program = schedule_.programs[rank];
    const std::size_t block = order_.number(now.at.rank, now.at.block);
    auto& mine = listed_[rank][block];
    // Skips waits that the block's last step here already had.
    const auto ended =
        std::ranges::partition_point(mine, [&](const Listed& l) { return l.operation < (*now.known)[block]; });
    const Known* before = ended == mine.begin() ? nullptr : (ended - 1)->known.get();
    for (std::size_t b = 0; b < order_.count(); ++b) {
      const auto& list = listed_[rank][b];
      if (list.empty() || (b != block && before && (*before)[b] >= (*now.known)[b])) continue;
      auto end = std::ranges::partition_point(list, [&](const Listed& l) { return l.operation < (*now.known)[b]; });
      // Steps with equal knowledge are not ordered among each other, so all of them are needed.
      for (auto i = end; i != list.begin() && (i - 1)->known == (end - 1)->known; --i) after.push_back((i - 1)->step);
    }
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    step.channel = static_cast<std::uint8_t>(now.at.block);
    program.set_after(step, after);
    program.set_further(step, further);
    program.steps.push_back(step);
    const auto index = static_cast<std::int32_t>(program.steps.size() - 1);
    mine.push_back({static_cast<std::int32_t>(now.at.operation), index, now.known, rank != now.at.rank});
    return index;
  }

  // When a gpu's thread blocks have ended, its memory belongs to the caller. So they must know by then that every
  // access by another gpu has ended.
  void check_end(Rank rank) const {
    const Known known = order_.at_the_end(rank);
    for (std::size_t b = 0; b < listed_[rank].size(); ++b)
      for (const Listed& l : listed_[rank][b])
        if (l.from_outside && l.operation >= known[b])
          text::refuse("gpus {}: ends without waiting for {}", rank, where(schedule_, rank, l.step));
  }

  [[noreturn]] static void fail(const PlanPosition& at, const std::string& why) {
    text::refuse("{}: {}", mscclpp::place(at.rank, at.block, at.operation), why);
  }

  const mscclpp::ExecutionPlan& plan_;
  mscclpp::PlanOrder order_;
  Schedule schedule_;
  std::vector<std::vector<std::vector<Listed>>> listed_;  // by accessed gpu, then by thread block
  std::map<std::tuple<Rank, Rank, std::size_t>, std::int32_t> tags_;
};

}  // namespace

Schedule import_mscclpp(std::string_view json) {
  const mscclpp::ExecutionPlan plan = mscclpp::read(json);
  return Joiner(plan).run();
}

}  // namespace trellis::schedule
