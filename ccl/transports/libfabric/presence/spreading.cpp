// How news reach all ranks: in a large communicator, each rank relays them to its neighbours.
#include "ccl/transports/libfabric/presence/neighbours.h"
#include "ccl/transports/libfabric/presence/presence.h"

namespace trellis::ccl::libfabric {

void Presence::announce(const std::function<void(PublicState&)>& f) {
  const std::lock_guard lock(mutex_);
  f(mine_);
  owe_all_locked();
}

void Presence::publish(const std::function<void(PublicState&)>& f) {
  const std::lock_guard lock(mutex_);
  f(mine_);
  publish_locked();
  owe_all_locked();
}

void Presence::publish_locked() {
  ++mine_.head.edition;
  for (const Rank r : gossip_.neighbours()) owe_locked(r);
}

void Presence::owe_all_locked() {
  for (const Rank r : gossip_.neighbours()) owe_locked(r);
  for (Rank r = 0; r < ranks(); ++r)
    if (!is_large(ranks()) || peer(r).heard != Deadline()) owe_locked(r);
}

void Presence::mark_aborted() {
  Rank none = -1;
  aborted_.compare_exchange_strong(none, rank_);
  announce([&](PublicState& s) { s.head.aborted = aborted_; });
}

void Presence::leave() {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  mine_.head.left = true;
  publish_locked();
  owe_all_locked();
  for (Rank r = 0; r < ranks(); ++r)
    if (Peer& p = peer(r); p.owed && !p.state.head.left) {
      ask_locked(r, now);
      p.asked_as_it_left = p.asks;
    }
}

std::uint32_t Presence::begin_survey() {
  const std::lock_guard lock(mutex_);
  ++mine_.head.survey;
  publish_locked();
  return mine_.head.survey;
}

bool Presence::surveyed(Rank r, std::uint32_t survey) const {
  const std::lock_guard lock(mutex_);
  const PublicHead& h = r == rank_ ? mine_.head : peer(r).state.head;
  return h.survey >= survey || h.left;
}

// Relays as many states of other ranks as there is room for.
void Presence::relay_locked(Rank to, int path, std::size_t room) {
  mine_.relayed.clear();
  while (const auto of = gossip_.next(to)) {
    PublicState one;
    take_relayed(one, peer(*of).state);
    one.head.from = *of;
    const std::size_t at = mine_.relayed.size(), bytes = public_bytes(one);
    if (public_bytes(mine_) + bytes > room) break;
    mine_.relayed.resize(at + bytes);
    write_public(one, std::span(mine_.relayed).subspan(at));
    gossip_.goes(to, path);
  }
}

// Takes in that the communicator has ended. In a large communicator it is relayed the first time that it is heard.
bool Presence::hear_of_end(const PublicHead& h) {
  PublicHead& mine = mine_.head;
  Rank none = -1;
  bool fresh = h.lost >= 0 && lost_.compare_exchange_strong(none, h.lost);
  if (fresh) mine.lost = h.lost;
  fresh = suspect_locked(h) || fresh;
  none = -1;
  if (h.aborted >= 0 && aborted_.compare_exchange_strong(none, h.aborted)) {
    mine.aborted = h.aborted;
    fresh = true;
  }
  if (h.missing >= 0 && rank_ != 0) missing_ = mine.missing = h.missing;  // before the outcome, as above
  Outcome open = Outcome::open;
  if (rank_ != 0 && h.outcome != Outcome::open && outcome_.compare_exchange_strong(open, h.outcome)) {
    mine.outcome = h.outcome;
    fresh = true;
  }
  if (h.gives_up && !mine.gives_up && is_large(ranks())) fresh = mine.gives_up = true;
  return fresh;
}

void Presence::hear_relayed(Rank by, std::span<const std::byte> rest) {
  for (PublicState s; !rest.empty() && read_public(rest, s); rest = rest.subspan(public_bytes(s))) {
    const Rank of = s.head.from;
    if (of < 0 || of == rank_ || !names_ranks_of(s.head, ranks())) return;
    if (s.head.version > peer(of).state.head.version) take_relayed(peer(of).state, s);
    gossip_.came(by, of, s.head.edition);
  }
}

}  // namespace trellis::ccl::libfabric
