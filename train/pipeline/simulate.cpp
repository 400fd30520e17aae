#include "train/pipeline/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "text/refuse.h"

namespace trellis::train {
namespace {

constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

class Simulation {
 public:
  Simulation(const PipelineSchedule& s, std::vector<StageCosts> costs, MessageMode messages)
      : s_(s), costs_(std::move(costs)), messages_(messages) {
    const auto ranks = s.ranks.size();
    next_.assign(ranks, 0), now_.assign(ranks, 0), live_.assign(ranks, 0);
    out_.busy.assign(ranks, 0), out_.live.assign(ranks, 0);
    out_.starts.resize(ranks), out_.ends.resize(ranks);
    const auto places = static_cast<std::size_t>(s.shape.stages()) * static_cast<std::size_t>(s.shape.micro_batches);
    for (auto* list : {&forward_, &backward_, &weight_, &forward_here_, &backward_here_}) list->assign(places, unknown);
  }

  PipelineTiming run() {
    // The ranks to advance. A rank's step may let other ranks go on, which are then added to them again.
    std::vector<std::size_t> ready(s_.ranks.size());
    for (std::size_t r = 0; r < ready.size(); ++r) ready[r] = r;
    while (!ready.empty()) {
      const std::size_t r = ready.back();
      ready.pop_back();
      while (next_[r] < s_.ranks[r].size() && step(r, ready)) {
      }
    }
    for (std::size_t r = 0; r < s_.ranks.size(); ++r) {
      out_.end = std::max(out_.end, now_[r]);
      if (next_[r] < s_.ranks[r].size() && out_.fault.size() < 400) out_.fault += stuck(r);
    }
    if (out_.fault.empty()) out_.fault = missing();
    return std::move(out_);
  }

 private:
  std::size_t index(std::int32_t stage, std::int32_t micro) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(s_.shape.micro_batches) +
           static_cast<std::size_t>(micro);
  }

  bool step(std::size_t r, std::vector<std::size_t>& ready) {
    const Slot slot = s_.ranks[r][next_[r]];
    const std::int32_t stage = s_.stage_of(static_cast<std::int32_t>(r), slot.chunk);
    return computes(slot.action) ? compute(r, slot, stage, ready) : message(r, slot, stage, ready);
  }

  // The time at which the stage has its input; unknown: not yet.
  std::int64_t needed(const Slot& slot, std::int32_t stage) const {
    const std::size_t at = index(stage, slot.micro);
    const bool last = stage + 1 == s_.shape.stages();
    const auto from = [&](const std::vector<std::int64_t>& made, const std::vector<std::int64_t>& here,
                          std::int32_t other) {
      const bool local = messages_ == MessageMode::free || s_.rank_of(other) == s_.rank_of(stage);
      return local ? made[index(other, slot.micro)] : here[at];
    };
    if (slot.action == Action::weight) return backward_[at];
    if (slot.action == Action::forward) return stage == 0 ? 0 : from(forward_, forward_here_, stage - 1);
    if (forward_[at] == unknown) return unknown;
    return last ? forward_[at] : from(backward_, backward_here_, stage + 1);
  }

  bool compute(std::size_t r, const Slot& slot, std::int32_t stage, std::vector<std::size_t>& ready) {
    const std::int64_t here = needed(slot, stage);
    if (here == unknown) return false;
    const StageCosts& costs = costs_[static_cast<std::size_t>(stage)];
    const std::int64_t cost = slot.action == Action::forward  ? costs.forward
                              : slot.action == Action::weight ? costs.weight
                              : s_.split                      ? costs.backward
                                                              : costs.backward + costs.weight;
    const std::int64_t start = std::max(now_[r], here), end = start + cost;
    done(r, start, end);
    out_.busy[r] += cost;
    auto& list = slot.action == Action::forward ? forward_ : slot.action == Action::backward ? backward_ : weight_;
    if (list[index(stage, slot.micro)] != unknown && out_.fault.empty())
      out_.fault = fmt::format("rank {}: {} of micro-batch {}, chunk {}, a second time\n", r, name(slot.action),
                               slot.micro, slot.chunk);
    list[index(stage, slot.micro)] = end;
    if (slot.action == Action::forward) out_.live[r] = std::max(out_.live[r], ++live_[r]);
    if (slot.action == (s_.split ? Action::weight : Action::backward)) --live_[r];
    if (messages_ == MessageMode::free)
      for (const std::int32_t other : {stage - 1, stage + 1})
        if (other >= 0 && other < s_.shape.stages()) ready.push_back(static_cast<std::size_t>(s_.rank_of(other)));
    return true;
  }

  // The other rank's slot for the same message; sets `rank` to that rank. Micro-batch -1: there is no such stage.
  Slot partner(const Slot& slot, std::int32_t stage, std::size_t& rank) const {
    const bool forward = slot.action == Action::send_forward || slot.action == Action::receive_forward;
    const bool send = slot.action == Action::send_forward || slot.action == Action::send_backward;
    const std::int32_t other = forward == send ? stage + 1 : stage - 1;
    if (other < 0 || other >= s_.shape.stages()) return {slot.action, -1, -1};
    rank = static_cast<std::size_t>(s_.rank_of(other));
    const Action action = send ? (forward ? Action::receive_forward : Action::receive_backward)
                               : (forward ? Action::send_forward : Action::send_backward);
    return {action, slot.micro, s_.chunk_of(other)};
  }

  bool message(std::size_t r, const Slot& slot, std::int32_t stage, std::vector<std::size_t>& ready) {
    const bool forward = slot.action == Action::send_forward || slot.action == Action::receive_forward;
    const bool send = slot.action == Action::send_forward || slot.action == Action::send_backward;
    std::size_t other = 0;
    const Slot wanted = partner(slot, stage, other);
    if (wanted.micro < 0) return false;
    if (send && (forward ? forward_ : backward_)[index(stage, slot.micro)] == unknown) return false;
    if (messages_ == MessageMode::buffered && send) {
      arrived(slot, stage, forward, now_[r]);
      done(r, now_[r], now_[r]);
      ready.push_back(other);
      return true;
    }
    if (messages_ == MessageMode::buffered) {
      const std::int64_t at = (forward ? forward_here_ : backward_here_)[index(stage, slot.micro)];
      if (at == unknown) return false;
      done(r, now_[r], std::max(now_[r], at));
      return true;
    }
    if (next_[other] >= s_.ranks[other].size() || s_.ranks[other][next_[other]] != wanted) return false;
    if (!send && (forward ? forward_ : backward_)[index(forward ? stage - 1 : stage + 1, slot.micro)] == unknown)
      return false;
    const std::int64_t time = std::max(now_[r], now_[other]);
    if (send)
      arrived(slot, stage, forward, time);
    else
      (forward ? forward_here_ : backward_here_)[index(stage, slot.micro)] = time;
    done(r, now_[r], time);
    done(other, now_[other], time);
    ready.push_back(other);
    return true;
  }

  void arrived(const Slot& slot, std::int32_t stage, bool forward, std::int64_t time) {
    (forward ? forward_here_ : backward_here_)[index(forward ? stage + 1 : stage - 1, slot.micro)] = time;
  }

  void done(std::size_t r, std::int64_t start, std::int64_t end) {
    out_.starts[r].push_back(start), out_.ends[r].push_back(end);
    now_[r] = end;
    ++next_[r];
  }

  std::string stuck(std::size_t r) const {
    const Slot slot = s_.ranks[r][next_[r]];
    return fmt::format("rank {} waits for ever at slot {}: {} of micro-batch {}, chunk {}\n", r, next_[r],
                       name(slot.action), slot.micro, slot.chunk);
  }

  std::string missing() const {
    for (std::int32_t stage = 0; stage < s_.shape.stages(); ++stage)
      for (std::int32_t m = 0; m < s_.shape.micro_batches; ++m) {
        const std::size_t at = index(stage, m);
        if (forward_[at] != unknown && backward_[at] != unknown && (!s_.split || weight_[at] != unknown)) continue;
        return fmt::format("stage {} never computes all of micro-batch {}\n", stage, m);
      }
    return {};
  }

  const PipelineSchedule& s_;
  std::vector<StageCosts> costs_;  // by stage
  MessageMode messages_;
  PipelineTiming out_;
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> now_;
  std::vector<std::int32_t> live_;
  std::vector<std::int64_t> forward_, backward_, weight_;   // when each stage ended each pass, by micro-batch
  std::vector<std::int64_t> forward_here_, backward_here_;  // when each stage's input arrived
};

}  // namespace

double PipelineTiming::bubble() const {
  double idle = 0, sum = 0;
  for (const std::int64_t each : busy) idle += static_cast<double>(end - each), sum += static_cast<double>(each);
  return sum == 0 ? 0 : idle / sum;
}

PipelineTiming simulate(const PipelineSchedule& s, const StageCosts& costs, MessageMode messages) {
  return simulate_uneven(s, std::vector<StageCosts>(static_cast<std::size_t>(s.shape.stages()), costs), messages);
}

PipelineTiming simulate_uneven(const PipelineSchedule& s, const std::vector<StageCosts>& of_stages,
                               MessageMode messages) {
  if (of_stages.size() != static_cast<std::size_t>(s.shape.stages()))
    text::refuse("costs of {} stages: expected {}, as the schedule has", of_stages.size(), s.shape.stages());
  return Simulation(s, of_stages, messages).run();
}

}  // namespace trellis::train
