#include "ccl/transports/libfabric/presence/join_barrier.h"

#include "ccl/transports/libfabric/presence/gossip_neighbours.h"

namespace trellis::ccl::libfabric {

JoinBarrier::JoinBarrier(Rank rank, Rank ranks, const PublishedStates& states, ControlQueue& queue)
    : rank_(rank), ranks_(ranks), states_(states), queue_(queue) {}

void JoinBarrier::come() {
  come_ = true;
  joined_ = !is_large(ranks_);
  queue_.owe_all();
}

void JoinBarrier::give_up() {
  gives_up_ = true;
  queue_.owe_all();
}

// In a large communicator, a rank knows only of itself and of its children in the tree, which report when their whole
// subtree has joined.
std::vector<Rank> JoinBarrier::not_joined() {
  std::vector<Rank> missing;
  const auto look = [&](Rank r) {
    if (r == rank_ ? !come_ : !states_.of(r).head.joined) missing.push_back(r);
  };
  if (!is_large(ranks_)) {
    for (Rank r = 0; r < ranks_; ++r) look(r);
    return missing;
  }
  look(rank_);
  absent_ = -1;
  for (const Rank r : below(rank_, ranks_)) {
    look(r);
    const PublicStateHeader& h = states_.of(r).head;
    if (!h.joined && absent_ < 0) absent_ = h.absent >= 0 ? h.absent : r;
  }
  if (missing.empty() && !joined_) {
    joined_ = true;
    queue_.owe(above(rank_, ranks_));
  }
  return missing;
}

JoinOutcome JoinBarrier::settle(JoinOutcome wanted) {
  if (outcome_ != JoinOutcome::open) return outcome_;
  if (const std::vector<Rank> absent = not_joined(); !absent.empty())
    missing_ = is_large(ranks_) ? absent_ : absent.front();
  outcome_ = wanted;
  queue_.owe_all();
  return wanted;
}

bool JoinBarrier::hear(const PublicStateHeader& h) {
  bool fresh = false;
  if (rank_ == 0) {
    if (h.gives_up) settle(JoinOutcome::dropped);
  } else {
    if (h.missing >= 0) missing_ = h.missing;
    fresh = outcome_ == JoinOutcome::open && h.outcome != JoinOutcome::open;
    if (fresh) outcome_ = h.outcome;
  }
  if (h.gives_up && !gives_up_ && is_large(ranks_)) fresh = gives_up_ = true;
  return fresh;
}

void JoinBarrier::write(PublicStateHeader& h) const {
  h.joined = joined_;
  h.gives_up = gives_up_;
  h.outcome = outcome_;
  h.missing = missing_;
  h.absent = absent_;
}

}  // namespace trellis::ccl::libfabric
