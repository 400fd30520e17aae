// How rank 0 learns that all have joined, and all learn it from rank 0.
#include "ccl/transports/libfabric/presence/neighbours.h"
#include "ccl/transports/libfabric/presence/presence.h"

namespace trellis::ccl::libfabric {

void Presence::come() {
  announce([&](PublicState& s) {
    come_ = true;
    s.head.joined = !is_large(ranks());
  });
}

// In a large communicator, each rank knows of those right below it whether they and those behind them have joined.
std::vector<Rank> Presence::not_joined() {
  std::vector<Rank> missing;
  const std::lock_guard lock(mutex_);
  const auto look = [&](Rank r) {
    if (r == rank_ ? !come_ : !peer(r).state.head.joined) missing.push_back(r);
  };
  if (!is_large(ranks())) {
    for (Rank r = 0; r < ranks(); ++r) look(r);
    return missing;
  }
  look(rank_);
  mine_.head.absent = -1;
  for (const Rank r : below(rank_, ranks())) {
    look(r);
    const PublicHead& h = peer(r).state.head;
    if (!h.joined && mine_.head.absent < 0) mine_.head.absent = h.absent >= 0 ? h.absent : r;
  }
  if (missing.empty() && !mine_.head.joined) {
    mine_.head.joined = true;
    owe_locked(above(rank_, ranks()));
  }
  return missing;
}

Outcome Presence::settle(Outcome wanted) {
  const std::vector<Rank> absent = not_joined();
  if (!absent.empty()) {  // before the outcome, which makes it be read
    const std::lock_guard lock(mutex_);
    missing_ = is_large(ranks()) ? mine_.head.absent : absent.front();
  }
  Outcome known = Outcome::open;
  if (!outcome_.compare_exchange_strong(known, wanted)) return known;
  announce([&](PublicState& s) {
    s.head.outcome = wanted;
    s.head.missing = missing_;
  });
  return wanted;
}

}  // namespace trellis::ccl::libfabric
