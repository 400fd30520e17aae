#include "schedule/formats/mscclpp_json_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/refuse.h"

namespace trellis::schedule::mscclpp {
namespace {

constexpr std::size_t most_blocks = 4096;  // of all gpus; each needs a counter for each other

}  // namespace

PlanOrder::PlanOrder(const ExecutionPlan& plan) : plan_(plan), first_{0} {
  for (const PlanGpu& gpu : plan.gpus) first_.push_back(first_.back() + gpu.blocks.size());
  if (first_.back() > most_blocks)
    text::refuse("plan: {} thread blocks: at most {} can be followed", first_.back(), most_blocks);
  const auto nothing = std::make_shared<const Known>(first_.back(), 0);
  for (Rank r = 0; r < static_cast<Rank>(plan.gpus.size()); ++r) {
    for (const PlanThreadBlock& block : plan.gpus[r].blocks) {
      blocks_.push_back({.rank = r, .known = nothing, .learnt = Known(first_.back(), 0)});
      const auto move = std::ranges::find_if(block.operations, [](const PlanOperation& op) { return moves(op.kind); });
      first_move_.push_back(static_cast<std::int32_t>(move - block.operations.begin()));
      for (const PlanOperation& op : block.operations)
        if (op.kind == PlanOperationKind::barrier) users_[{r, op.ids[0]}].insert(blocks_.size() - 1);
    }
    for (std::size_t i = 0; i < plan.gpus[r].semaphores.size(); ++i)
      for (std::int32_t k = 0; k < plan.gpus[r].semaphores[i]; ++k)
        releases_[{r, static_cast<std::int32_t>(i)}].push_back(nothing);
  }
  // The k-th channel from one gpu to another pairs with the k-th channel back.
  std::map<std::pair<Rank, Rank>, std::vector<std::int32_t>> between;
  for (Rank r = 0; r < static_cast<Rank>(plan.gpus.size()); ++r)
    for (std::size_t c = 0; c < plan.gpus[r].channels.size(); ++c)
      between[{r, plan.gpus[r].channels[c]}].push_back(static_cast<std::int32_t>(c));
  for (Rank r = 0; r < static_cast<Rank>(plan.gpus.size()); ++r) {
    std::map<Rank, std::size_t> used;
    auto& ends = ends_.emplace_back();
    for (const Rank peer : plan.gpus[r].channels) {
      const auto& back = between[{peer, r}];
      const std::size_t k = used[peer]++;
      ends.emplace_back(k < back.size() ? peer : -1, k < back.size() ? back[k] : -1);
    }
  }
}

void PlanOrder::fail(const PlanPosition& at, const std::string& why) const {
  text::refuse("{}: {}", place(at.rank, at.block, at.operation), why);
}

std::pair<Rank, std::int32_t> PlanOrder::other_end(const PlanPosition& at, std::int32_t channel) const {
  const auto end = ends_[at.rank][channel];
  if (end.first < 0)
    fail(at, fmt::format("channel {} has no channel back from gpu {}", channel, plan_.gpus[at.rank].channels[channel]));
  return end;
}

// Throws if another thread block uses the id, too: timing would decide which of the two is served first.
void PlanOrder::only(std::map<std::pair<Rank, std::int32_t>, std::size_t>& users, std::int32_t id, std::size_t block,
                     const char* what) {
  const PlanPosition at = here(block);
  if (const auto [found, added] = users.emplace(std::pair(at.rank, id), block); found->second != block)
    fail(at, fmt::format("{} {} is used by thread block {} too", what, id, found->second - first_[at.rank]));
}

// Throws if more thread blocks use the barrier than meet at it: timing would decide which ones meet first.
void PlanOrder::expect_all_meet(const PlanPosition& at) const {
  const PlanOperation& op = operation(at);
  if (const std::size_t users = users_.at({at.rank, op.ids[0]}).size(); std::cmp_greater(users, op.blocks))
    fail(at, fmt::format("{} thread blocks meet at barrier {}, which {} use", op.blocks, op.ids[0], users));
}

bool PlanOrder::ready(std::size_t block) {
  const PlanPosition at = here(block);
  if (at.operation >= plan_.gpus[at.rank].blocks[at.block].operations.size()) return false;
  const PlanOperation& op = operation(at);
  const bool waits = op.kind == PlanOperationKind::wait || op.kind == PlanOperationKind::relaxed_wait;
  if (op.kind == PlanOperationKind::barrier) {
    expect_all_meet(at);
    auto& arrived = arrived_[{at.rank, op.ids[0]}];
    if (std::ranges::find(arrived, block) == arrived.end()) arrived.push_back(block);
    return static_cast<std::int32_t>(arrived.size()) >= op.blocks;
  }
  if (!waits && op.kind != PlanOperationKind::acquire) return true;
  for (const std::int32_t id : op.ids) {
    only(waits ? waiters_ : acquirers_, id, block, waits ? "channel" : "semaphore");
    auto& line = (waits ? signals_ : releases_)[{at.rank, id}];
    if (static_cast<std::ptrdiff_t>(line.size()) < std::ranges::count(op.ids, id)) return false;
  }
  return true;
}

void PlanOrder::learn(State& state, const Known& more) {
  std::ranges::transform(state.learnt, more, state.learnt.begin(),
                         [](std::int32_t x, std::int32_t y) { return std::max(x, y); });
}

void PlanOrder::meet(State& state, std::size_t block) {
  learn(state, *state.known);
  state.learnt[block] = static_cast<std::int32_t>(state.next);
  state.known = std::make_shared<const Known>(state.learnt);
}

bool PlanOrder::knows_of_data(std::size_t block) const {
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    if ((*blocks_[block].known)[b] > first_move_[b]) return true;
  return static_cast<std::int32_t>(blocks_[block].next) > first_move_[block];
}

void PlanOrder::pass(std::size_t block) {
  State& state = blocks_[block];
  const PlanPosition at = here(block);
  const PlanOperation& op = operation(at);
  switch (op.kind) {
    case PlanOperationKind::nop:
      ++state.next, meet(state, block);
      return;
    case PlanOperationKind::barrier:
      return pass_barrier(block);
    case PlanOperationKind::relaxed_signal:
      if (knows_of_data(block)) fail(at, "a relaxed signal does not promise that what was written before is seen");
      [[fallthrough]];
    case PlanOperationKind::signal:
      for (const std::int32_t id : op.ids) {
        only(signallers_, id, block, "channel");
        signals_[other_end(at, id)].push_back(state.known);
      }
      break;
    case PlanOperationKind::release:
      for (const std::int32_t id : op.ids) {
        only(releasers_, id, block, "semaphore");
        releases_[{at.rank, id}].push_back(state.known);
      }
      break;
    case PlanOperationKind::wait:
    case PlanOperationKind::relaxed_wait:
    case PlanOperationKind::acquire:
      for (const std::int32_t id : op.ids) {
        auto& line = (op.kind == PlanOperationKind::acquire ? releases_ : signals_)[{at.rank, id}];
        learn(state, *line.front());
        line.pop_front();
      }
      break;
    default:
      break;
  }
  ++state.next;
}

void PlanOrder::pass_barrier(std::size_t block) {
  const PlanPosition at = here(block);
  const PlanOperation& op = operation(at);
  auto arrived = std::exchange(arrived_[{at.rank, op.ids[0]}], {});
  Known all(blocks_.size(), 0);
  for (const std::size_t b : arrived) {
    if (operation(here(b)).blocks != op.blocks)
      fail(at, "the thread blocks that meet here do not agree on how many they are");
    ++blocks_[b].next;
    meet(blocks_[b], b);
    std::ranges::transform(all, *blocks_[b].known, all.begin(),
                           [](std::int32_t x, std::int32_t y) { return std::max(x, y); });
  }
  for (const std::size_t b : arrived) {
    learn(blocks_[b], all);
    blocks_[b].known = std::make_shared<const Known>(all);
  }
}

void PlanOrder::check_all_ended() const {
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const PlanPosition at = here(b);
    if (at.operation < plan_.gpus[at.rank].blocks[at.block].operations.size()) fail(at, "waits for what never comes");
  }
}

Known PlanOrder::at_the_end(Rank rank) const {
  Known all(blocks_.size(), 0);
  for (std::size_t b = first_[rank]; b < first_[rank + 1]; ++b)
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = std::max({all[i], (*blocks_[b].known)[i], blocks_[b].learnt[i]});
  return all;
}

}  // namespace trellis::schedule::mscclpp
