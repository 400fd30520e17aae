// Direct exchange: every rank sends to each rank that needs its data, all at once, so one step with n-1 messages per
// rank. Receivers sum in rank order, so an all_reduce has the same bits on every rank.
#include <algorithm>

#include "schedule/algorithms/patterns/direct.h"

#include <fmt/format.h>

namespace trellis::schedule {
namespace {

using enum Collective;

void sum_everywhere(Builder& b, const TorusDistances& distances, const BlockShare& share) {
  each_to_each(b, distances,
               [&](Rank r, Rank peer, Rank distance) { b.copy(share.at(r, 0), share.arrival(peer, 0, distance)); });
  for (Rank r : b.senders()) add_in_rank_order(b, distances, share, r, 0);
}

void sum_at_root(Builder& b, const BlockShare& share, Rank root) {
  to_root(b, root, [&](Rank r, Rank distance) { b.copy(share.at(r, 0), share.arrival(root, 0, distance)); });
  for (Rank r : b.senders())
    if (r == root) add_in_rank_order(b, TorusDistances({b.ranks()}), share, root, 0);
}

// In place, each of two ranks that exchange blocks would overwrite the block that it still has to send to the other. So
// arriving blocks wait in scratch.
void transpose(Builder& b, const TorusDistances& distances, const BlockShare& share) {
  const bool staged = b.in_place();
  const auto waiting = [&](Rank r, Rank from) { return tmp(r, share.chunk(from), 1, share.chunk(from)); };
  const auto final = [&](Rank r, Rank from) { return out(r, share.chunk(from)); };
  each_to_each(b, distances, [&](Rank r, Rank peer, Rank) {
    b.copy(in(r, share.chunk(peer)), staged ? waiting(peer, r) : final(peer, r));
  });
  const Rank n = b.ranks();
  for (Rank r : b.senders()) {
    b.copy(in(r, share.chunk(r)), final(r, r));
    for (Rank distance = 1; staged && distance < n; ++distance) {
      const Rank from = distances.behind(r, distance);
      b.copy(waiting(r, from), final(r, from));
    }
  }
}

// In place, a rank that both sends and receives must not lose what it sends. The arrival waits in scratch.
void permute_pairs(const Request& request, Builder& b, const BlockShare& share) {
  std::vector<Pair> pairs = request.operation.pairs;
  std::ranges::sort(pairs, {}, &Pair::source);
  const auto target_of = [&](Rank r) {
    const auto pair = std::ranges::lower_bound(pairs, r, {}, &Pair::source);
    return pair != pairs.end() && pair->source == r ? pair->target : -1;
  };
  const auto source_of = [&](Rank r) {
    const auto pair = std::ranges::find(pairs, r, &Pair::target);
    return pair != pairs.end() ? pair->source : -1;
  };
  const auto staged = [&](Rank target) { return b.in_place() && target_of(target) >= 0; };
  const std::int64_t c = share.first;
  for (Rank r : b.senders(source_of)) {
    const Rank target = target_of(r);
    if (target >= 0) b.copy(in(r, c), target != r && staged(target) ? tmp(target, c, 1, c) : out(target, c));
  }
  for (Rank r : b.senders(source_of)) {
    const Rank target = target_of(r);
    if (target >= 0 && target != r && staged(target)) b.copy(tmp(target, c, 1, c), out(target, c));
  }
}

void build_share(const Request& request, Builder& b, const BlockShare& share) {
  const Rank root = request.operation.root;
  const TorusDistances distances(request.dims);
  switch (request.operation.collective) {
    case all_reduce:
    case barrier:
      return sum_everywhere(b, distances, share);
    case reduce:
      return sum_at_root(b, share, root);
    case reduce_scatter:
    case reduce_scatter_v:
      return sum_at_owners(b, distances, share);
    case all_gather:
    case all_gather_v:
      return send_to_all(b, distances, share);
    case all_to_all:
    case all_to_all_v:
      return transpose(b, distances, share);
    case permute:
      return permute_pairs(request, b, share);
    case broadcast:
      return from_root(b, root, [&](Rank r) { b.copy(share.at(root, 0), share.at(r, 0)); });
    case scatter:
      return from_root(b, root, [&](Rank r) { b.copy(share.at(root, r), share.at(r, r)); });
    case gather:
      return to_root(b, root, [&](Rank r, Rank) { b.copy(share.at(r, r), share.at(root, r)); });
    case send_recv:
      for (Rank r : b.senders([&](Rank) { return root; }))
        if (r == root && r != request.operation.peer) b.copy(share.at(root, 0), share.at(request.operation.peer, 0));
  }
}

void build(const Request& request, Builder& b) {
  each_share(request, b, [&](Builder& on, const BlockShare& share) { build_share(request, on, share); });
}

std::string refuses(const Request& r) {
  if (r.segments > 1 && !reduces(r.operation.collective))
    return fmt::format("{} segments: expected 1, as nothing follows the one step", r.segments);
  if (r.channels > 1 && r.operation.collective == barrier)
    return fmt::format("{} channels: expected 1, as a barrier carries no data", r.channels);
  return "";
}

Symmetry symmetry(const Request& r) {
  const Rank n = r.ranks();
  const Symmetry distinct{{{SymmetryAxis::Kind::distinct, n}}};
  if (rooted(r.operation.collective) || r.operation.collective == send_recv) return distinct;
  if (r.operation.collective != permute) return TorusDistances(r.dims).torus();
  const auto shift = [&](const Pair& p) { return (p.target - p.source + n) % n; };
  const bool alike = std::ssize(r.operation.pairs) == n && std::ranges::all_of(r.operation.pairs, [&](const Pair& p) {
                       return shift(p) == shift(r.operation.pairs.front());
                     });
  return alike ? TorusDistances({n}).torus() : distinct;
}

const RegisteredAlgorithm registered{{
    .name = "direct",
    .summary =
        "everyone to everyone in one step; an all-reduce sends whole buffers, which Neuron calls single-step Mesh",
    .constraint = "any rank count",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all, all_to_all_v,
               all_gather_v, reduce_scatter_v, permute, send_recv, barrier},
    .refuses = refuses,
    .pieces = [](const Request& r) { return r.shares(); },
    .build = build,
    .lanes_are_runs = true,
    .dims = UseOfDims::order,
    .symmetry = symmetry,
    .renown = 7,
}};

}  // namespace
}  // namespace trellis::schedule
