// PAT, parallel aggregated trees (Jeaugey, arXiv 2506.20252). Every block travels along its own binomial tree, shifted
// by its rank, and blocks that take the same step share a message. Far steps come first, while messages are small.
// Staging memory is bounded: where messages would exceed the bound, the trees are processed in parts.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// One step, in terms of an all-gather: every rank sends to the rank `hop` ahead. A rank that is x ahead of a block's
// owner is at place x of the block's tree. x = stride * y + area; the blocks of one area are listed by y.
struct Message {
  Rank hop = 0;
  Rank from_area = 0, from = 0;  // start of the list of blocks at the sender
  Rank to_area = 0, to = 0;      // and at the receiver
  Rank count = 0;
};

// First the logarithmic part: the trees over strides, all blocks at once. Then the linear part: the small tree within
// each stride, link by link, one block of each large tree at once. A reduce_scatter runs the same plan in reverse.
struct Plan {
  Rank ranks = 1;
  Rank stride = 1;
  Rank aggregated = 1;  // most blocks in one message
  bool blocks = false;  // blocks belong to ranks; otherwise chunks are numbered freely
  bool staged = false;  // lists of blocks are made contiguous in scratch
  std::int64_t first = 0;
  Rank own = 0;              // list place of a rank's own block
  std::vector<Rank> y = {};  // of each list place
  std::vector<Message> messages = {};

  Rank listed(Rank area) const { return area < ranks ? (ranks - area + stride - 1) / stride : 0; }
  Rank block(Rank r, Rank area, Rank at) const {
    const auto ahead = static_cast<Rank>(std::int64_t{stride} * y[at] + area);
    return r >= ahead ? r - ahead : r - ahead + ranks;
  }
  bool power_of_two() const { return std::has_single_bit(static_cast<std::uint32_t>(ranks)); }
  // If chunks are numbered freely, blocks with equal lower bits are one run.
  std::int64_t chunk(Rank owner) const {
    if (blocks || !power_of_two()) return first + owner;
    std::int64_t reversed = 0;
    for (Rank low = 1, high = ranks / 2; high > 0; low *= 2, high /= 2)
      if ((owner & low) != 0) reversed += high;
    return first + reversed;
  }
  ChunkPlace list(Rank r, Rank area, Rank at, Rank count) const {
    return tmp(r, std::int64_t{area} * aggregated + at, count, 0);
  }
};

// Orders the list so that every message is a run of it, with the largest y last. That block is left out if its target
// would be beyond the last rank; then arrivals go before the list, not after it.
void add_logarithmic(Plan& plan) {
  const Rank n = plan.aggregated, top = static_cast<Rank>(std::bit_ceil(static_cast<std::uint32_t>(n))) / 2;
  const auto held = [&](Rank step) { return (n + 2 * step - 1) / (2 * step); };
  const auto sent = [&](Rank step) { return (n + step - 1) / (2 * step); };
  plan.own = 0;
  for (Rank step = top; step > 0; step /= 2)
    if (sent(step) < held(step)) plan.own += sent(step);
  plan.y.assign(n, 0);
  Rank begin = plan.own;
  for (Rank step = top; step > 0; step /= 2) {
    const Rank count = sent(step), to = count < held(step) ? begin - count : begin + count;
    for (Rank i = 0; i < count; ++i) plan.y[to + i] = plan.y[begin + i] + step;
    plan.messages.push_back({.hop = step * plan.stride, .from = begin, .to = to, .count = count});
    begin = std::min(begin, to);
  }
}

// Depth first, so that at most one area per level of the small tree is in use.
void add_linear(Plan& plan, Rank area, Rank reach) {
  for (Rank hop = reach / 2; hop > 0; hop /= 2) {
    const Rank next = area + hop;
    if (const Rank count = plan.listed(next); count > 0)
      plan.messages.push_back({.hop = hop, .from_area = area, .to_area = next, .count = count});
    add_linear(plan, next, hop);
  }
}

// With one segment, the stride is two and the run purely logarithmic: its small trees are the last step, which carries
// half of all blocks. More segments make the stride longer and the messages smaller.
Plan plan_of(const Request& r, std::int32_t channel) {
  Plan plan{.ranks = r.ranks(), .blocks = by_block(r.operation.collective), .first = std::int64_t{channel} * r.ranks()};
  const auto all = std::bit_ceil(static_cast<std::uint32_t>(plan.ranks));
  plan.stride = static_cast<Rank>(std::min(all, 2 * std::bit_ceil(static_cast<std::uint32_t>(r.segments))));
  plan.aggregated = (plan.ranks + plan.stride - 1) / plan.stride;
  plan.staged = plan.blocks && plan.aggregated > 1;
  add_logarithmic(plan);
  add_linear(plan, 0, plan.stride);
  return plan;
}

// Without staging, a message is one run if the rank count is a power of two, otherwise one transfer per block.
template <class Move>
void each_run(const Plan& plan, Rank sender, const Message& m, Move move) {
  const auto chunk = [&](Rank i) { return plan.chunk(plan.block(sender, m.from_area, m.from + i)); };
  if (plan.power_of_two()) return move(plan.first + (chunk(0) - plan.first) / m.count * m.count, m.count);
  for (Rank i = 0; i < m.count; ++i) move(chunk(i), Rank{1});
}

void spread(Builder& b, const Plan& plan) {
  const Rank n = plan.ranks;
  if (plan.staged)
    for (Rank r : b.senders()) b.copy(data(r, r), plan.list(r, 0, plan.own, 1));
  for (const Message& m : plan.messages) {
    for (Rank r : b.senders([&](Rank me) { return (me - m.hop + n) % n; })) {
      const Rank peer = (r + m.hop) % n;
      if (plan.staged)
        b.copy(plan.list(r, m.from_area, m.from, m.count), plan.list(peer, m.to_area, m.to, m.count));
      else
        each_run(plan, r, m, [&](std::int64_t c, Rank count) { b.copy(data(r, c, count), data(peer, c, count)); });
    }
    if (!plan.staged) continue;
    for (Rank r : b.senders())
      for (Rank at = m.to; at < m.to + m.count; ++at)
        b.copy(plan.list(r, m.to_area, at, 1), data(r, plan.block(r, m.to_area, at)));
  }
}

void stage_input(Builder& b, const Plan& plan, Rank area) {
  for (Rank r : b.senders())
    for (Rank at = 0; at < plan.listed(area); ++at) b.copy(data(r, plan.block(r, area, at)), plan.list(r, area, at, 1));
}

void add_up(Builder& b, const Plan& plan) {
  const Rank n = plan.ranks;
  std::vector<bool> filled(plan.stride);
  for (auto m = plan.messages.rbegin(); m != plan.messages.rend(); ++m) {
    for (Rank area : {m->to_area, m->from_area})
      if (plan.staged && !filled[area]) {
        stage_input(b, plan, area);
        filled[area] = true;
      }
    for (Rank r : b.senders([&](Rank me) { return (me + m->hop) % n; })) {
      const Rank peer = (r - m->hop + n) % n;
      if (plan.staged)
        b.reduce(plan.list(r, m->to_area, m->to, m->count), plan.list(peer, m->from_area, m->from, m->count));
      else
        each_run(plan, peer, *m,
                 [&](std::int64_t c, Rank count) { b.reduce(data(r, c, count), data(peer, c, count)); });
    }
  }
  if (plan.staged)
    for (Rank r : b.senders()) b.copy(plan.list(r, 0, plan.own, 1), data(r, r));
}

std::string refuses(const Request& r) {
  if (r.channels > 1 && by_block(r.operation.collective))
    return fmt::format("{} channels: expected 1, as several blocks are staged side by side", r.channels);
  return "";
}

std::int64_t pieces(const Request& r) {
  return by_block(r.operation.collective) ? 1 : std::int64_t{r.channels} * r.ranks();
}

void build(const Request& request, Builder& b) {
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    const Plan plan = plan_of(request, channel);
    Builder on = b.on_channel(channel);
    if (reduces(request.operation.collective)) add_up(on, plan);
    if (request.operation.collective != reduce_scatter) spread(on, plan);
  }
}

const RegisteredAlgorithm registered{{
    .name = "pat",
    .summary = "parallel aggregated trees: log2 steps, the far ones with the least data",
    .constraint = "any rank count; segments is how many times fewer blocks than half of all go in one message",
    .serves = {all_gather, reduce_scatter, all_reduce},
    .refuses = refuses,
    .pieces = pieces,
    .build = build,
    .mixes_blocks = true,
    .dims = UseOfDims::none,
    .symmetry = rotated,
}};

}  // namespace
}  // namespace trellis::schedule
