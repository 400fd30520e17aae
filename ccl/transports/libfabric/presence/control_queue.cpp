#include "ccl/transports/libfabric/presence/control_queue.h"

#include <algorithm>

#include "ccl/transports/libfabric/presence/gossip_neighbours.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto between_repeats = 20ms;
constexpr auto between_looks = 20ms;
constexpr std::chrono::milliseconds most_silence = 200ms;  // before another path is tried
constexpr int silences = 8;                                // the timeout is at least this many such silences
constexpr int datagrams_longer = 5;                        // datagrams may be silent this many times as long as a wire
constexpr auto before_return = 2s;                         // before datagrams give way to a wire, which loses nothing

}  // namespace

ControlQueue::ControlQueue(Rank rank, Rank ranks, ControlPaths paths, std::chrono::milliseconds timeout)
    : rank_(rank), paths_(paths), timeout_(timeout), gossip_(rank, ranks), peers_(static_cast<std::size_t>(ranks)) {}

void ControlQueue::owe(Rank r) {
  if (r == rank_ || peer(r).owed) return;
  peer(r).owed = true;
  owed_.push_back(r);
}

void ControlQueue::owe_all() {
  const auto ranks = static_cast<Rank>(peers_.size());
  for (const Rank r : gossip_.neighbours()) owe(r);
  for (Rank r = 0; r < ranks; ++r)
    if (!is_large(ranks) || peer(r).was_heard) owe(r);
}

bool ControlQueue::under_way(Rank r) const { return (peer(r).in_flight >> peer(r).path & 1) != 0; }

std::vector<Rank> ControlQueue::take(Deadline now) {
  std::vector<Rank> taken;
  std::erase_if(owed_, [&](Rank r) {
    if (under_way(r) || peer(r).repeat > now) return false;
    peer(r).owed = false;
    taken.push_back(r);
    return true;
  });
  return taken;
}

void ControlQueue::sending(Rank r, int path, Deadline now) {
  peer(r).in_flight |= static_cast<std::uint8_t>(1U << path);
  peer(r).begun = now;
}

void ControlQueue::sent(Rank r, int path, bool well, Deadline now) {
  Peer& p = peer(r);
  p.in_flight &= static_cast<std::uint8_t>(~(1U << path));
  if (!well || path != paths_.datagrams) gossip_.ended(r, path, well);
  if (well) {
    if (path == p.path) p.repeat = {};
    if (gossip_.owes(r)) owe(r);
    return;
  }
  p.repeat = now + between_repeats;
  if (path == p.path) turn(r, path + 1, now);
}

void ControlQueue::put_off(Rank r) {
  gossip_.ended(r, peer(r).path, false);
  owe(r);
}

// Either end may fail over; the other follows as soon as it hears from it over the new path.
void ControlQueue::heard(Rank r, int path, Deadline now) {
  peer(r).was_heard = true;
  if (path != peer(r).path) turn(r, path, now);
}

void ControlQueue::turn(Rank r, int path, Deadline now) {
  Peer& p = peer(r);
  path %= paths_.all;
  if (p.path == paths_.datagrams && path != p.path) gossip_.ended(r, p.path, false);  // some may be lost: resends
  p.path = path;
  p.turned = now;
}

std::vector<ControlQueue::Turned> ControlQueue::fail_over(const std::function<Deadline(Rank)>& unanswered,
                                                          Deadline now) {
  std::vector<Turned> turned;
  if (paths_.all == 1 || now - looked_ < between_looks) return turned;
  looked_ = now;
  for (Rank r = 0; r < static_cast<Rank>(peers_.size()); ++r) {
    Peer& p = peer(r);
    // Stays with datagrams for longer: they pass as soon as the link does, while a wire may have to wait for a
    // retransmission.
    const auto most = p.path == paths_.datagrams ? datagrams_longer * longest_silence() : longest_silence();
    const auto since = [&](Deadline begun) { return begun != Deadline() && now - std::max(begun, p.turned) >= most; };
    if (p.path == paths_.datagrams && now - p.turned >= before_return) turn(r, 0, now);
    const bool stuck = under_way(r) && since(p.begun);
    if (!stuck && !since(unanswered(r))) continue;
    if (stuck) gossip_.ended(r, p.path, false);
    turn(r, p.path + 1, now);
    owe(r);
    turned.push_back({r, stuck});
  }
  return turned;
}

std::chrono::milliseconds ControlQueue::longest_silence() const { return std::min(most_silence, timeout_ / silences); }

}  // namespace trellis::ccl::libfabric
