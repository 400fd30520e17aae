#include "ccl/transports/libfabric/presence/published_states.h"

#include <algorithm>
#include <utility>

namespace trellis::ccl::libfabric {

PublishedStates::PublishedStates(std::uint64_t communicator, Rank rank, Rank ranks, ControlQueue& queue)
    : rank_(rank), queue_(queue), peers_(static_cast<std::size_t>(ranks)) {
  mine_.head.communicator = communicator;
  mine_.head.from = rank;
}

void PublishedStates::change(const std::function<void(PublicState&)>& f) { f(mine_); }

void PublishedStates::announce(const std::function<void(PublicState&)>& f) {
  f(mine_);
  queue_.owe_all();
}

void PublishedStates::publish(const std::function<void(PublicState&)>& f) {
  f(mine_);
  spread();
  queue_.owe_all();
}

void PublishedStates::spread() {
  ++mine_.head.edition;
  for (const Rank r : queue_.gossip().neighbours()) queue_.owe(r);
}

bool PublishedStates::accept(const PublicStateHeader& h) {
  if (h.from < 0 || h.from == rank_ || h.to != rank_ || !names_ranks_of(h, static_cast<Rank>(peers_.size())))
    return false;
  return peer(h.from).came.take(h.number);
}

void PublishedStates::take(const PublicState& s) {
  const Rank from = s.head.from;
  Peer& p = peer(from);
  if (s.head.version > p.version) {
    p.version = s.head.version;
    PublicState now = s;
    now.relayed.clear();
    if (p.latest.head.version > p.version) take_relayed(now, p.latest);
    p.latest = std::move(now);
  }
  Gossip& gossip = queue_.gossip();
  gossip.came(from, from, s.head.edition);
  take_relayed_by(from, s.relayed);
  for (const Rank r : gossip.neighbours())
    if (gossip.owes(r) && !left(r)) queue_.owe(r);
}

void PublishedStates::take_relayed_by(Rank by, std::span<const std::byte> rest) {
  for (PublicState s; !rest.empty() && read_public(rest, s); rest = rest.subspan(public_bytes(s))) {
    const Rank of = s.head.from;
    if (of < 0 || of == rank_ || !names_ranks_of(s.head, static_cast<Rank>(peers_.size()))) return;
    if (s.head.version > peer(of).latest.head.version) take_relayed(peer(of).latest, s);
    queue_.gossip().came(by, of, s.head.edition);
  }
}

PublicStateHeader& PublishedStates::begin_message(Rank to) {
  ++mine_.head.version;
  mine_.head.number = ++peer(to).messages;
  mine_.head.to = to;
  mine_.head.arrived = arrivals(to);  // read now, so that it counts what came over a rail before that was left
  return mine_.head;
}

std::size_t PublishedStates::write(Rank to, int path, std::size_t room, std::vector<std::byte>& into) {
  relay(to, path, room);
  const std::size_t bytes = public_bytes(mine_);
  into.resize(std::max(into.size(), bytes));
  write_public(mine_, into);
  return bytes;
}

// Relays as many states of other ranks as there is room for.
void PublishedStates::relay(Rank to, int path, std::size_t room) {
  mine_.relayed.clear();
  while (const auto of = queue_.gossip().next(to)) {
    PublicState one;
    take_relayed(one, peer(*of).latest);
    one.head.from = *of;
    const std::size_t at = mine_.relayed.size(), bytes = public_bytes(one);
    if (public_bytes(mine_) + bytes > room) break;
    mine_.relayed.resize(at + bytes);
    write_public(one, std::span(mine_.relayed).subspan(at));
    queue_.gossip().goes(to, path);
  }
}

}  // namespace trellis::ccl::libfabric
