#include "ccl/transports/libfabric/presence/presence.h"

#include <algorithm>
#include <numeric>

#include "ccl/transports/libfabric/presence/neighbours.h"
#include "ccl/transports/who.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto between_repeats = 20ms;
constexpr auto between_looks = 20ms;
constexpr auto sure_it_ended = 200ms;  // between connections that are refused, of a rank that is not heard
constexpr std::chrono::milliseconds most_silence = 200ms;  // of a path
constexpr int silences = 8;                                // in the timeout, at least
constexpr int asks = 16;                                   // the same, of a rank that does not answer
constexpr int datagrams_longer = 5;                        // than a wire, before another path is tried
constexpr auto before_return = 2s;                         // from datagrams to a wire, which loses nothing

// The pause between two requests to a rank: no shorter than its answers take, as over a slow link requests would take
// bandwidth from data.
Clock::duration pause_before(const Peer& p, Clock::duration apart, std::chrono::milliseconds timeout) {
  const Clock::duration silent = p.unanswered == Deadline() ? Clock::duration{} : p.asked - p.unanswered;
  return std::clamp<Clock::duration>(std::max(2 * p.round, silent / 4), apart,
                                     std::max<Clock::duration>(apart, timeout / asks));
}

}  // namespace

Presence::Presence(std::uint64_t identity, Rank rank, std::vector<std::size_t> places, std::vector<Member> members,
                   std::chrono::milliseconds timeout, ControlPaths paths)
    : identity_(identity),
      rank_(rank),
      places_(std::move(places)),
      members_(std::move(members)),
      timeout_(timeout),
      paths_(paths),
      gossip_(rank, ranks()),
      peers_(places_.size()) {
  mine_.head.communicator = identity;
  mine_.head.from = rank;
  for (const Member& m : members_) one_host_ = one_host_ && m.host == members_.front().host;
}

void Presence::change(const std::function<void(PublicState&)>& f) {
  const std::lock_guard lock(mutex_);
  f(mine_);
}

PublicState Presence::state(Rank r) const {
  const std::lock_guard lock(mutex_);
  return r == rank_ ? mine_ : peer(r).state;
}

Activity Presence::activity(Rank r) const {
  const std::lock_guard lock(mutex_);
  return r == rank_ ? mine_.head.activity : peer(r).state.head.activity;
}

std::uint32_t Presence::posts(Rank r) const {
  const std::lock_guard lock(mutex_);
  return r == rank_ ? mine_.head.posts : peer(r).state.head.posts;
}

RailSet Presence::rails_left_by(Rank r) const {
  const std::lock_guard lock(mutex_);
  return RailSet(r == rank_ ? mine_.head.rails_left : peer(r).state.head.rails_left);
}

RailCounts Presence::arrived_at(Rank r) const {
  const std::lock_guard lock(mutex_);
  return peer(r).state.head.arrived;
}

Deadline Presence::heard(Rank r) const {
  const std::lock_guard lock(mutex_);
  return peer(r).heard;
}

bool Presence::left(Rank r) const {
  const std::lock_guard lock(mutex_);
  return r == rank_ ? mine_.head.left : peer(r).state.head.left;
}

bool Presence::alive(Rank r) {
  if (r == rank_) return true;
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  Peer& p = peer(r);
  if (suspected_ != Deadline() && r == mine_.head.suspected_by) return true;  // until its word has been judged
  if (p.state.head.left) return false;
  return answers_locked(r, now);
}

// Data that come from a rank count as heartbeats, too: a slow link may be full of them.
std::chrono::nanoseconds Presence::silence_locked(Rank r, Deadline now) {
  Peer& p = peer(r);
  const bool takes_data = p.stuck == Deadline() || !p.state.head.activity.running;
  if (p.unanswered == Deadline()) return takes_data ? Clock::duration{} : now - p.stuck;
  const RailCounts counts = arrivals ? arrivals(r) : RailCounts{};
  const std::uint64_t came = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (came != p.data_came) p.data_heard = now;
  p.data_came = came;
  return now - std::max(p.unanswered, p.data_heard);
}

std::chrono::milliseconds Presence::silence(Rank r) {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (r == rank_ || is_neighbour(r) || peer(r).ended || peer(r).state.head.left) return {};
  const auto silent =
      std::max(silence_locked(r, now), peer(r).can_not_be_reached(paths_, now) ? now - peer(r).heard : 0ns);
  return std::chrono::duration_cast<std::chrono::milliseconds>(silent);
}

void Presence::set_stuck(Rank r, Deadline since) {
  const std::lock_guard lock(mutex_);
  peer(r).stuck = since;
}

// A firewall may refuse for a moment what it let pass before. So a refusal counts if it happens twice and nothing comes
// from that rank in between over another path.
void Presence::nobody_listens(std::size_t place) {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(places_, place);
  if (at == places_.end()) return;
  Peer& p = peers_[static_cast<std::size_t>(at - places_.begin())];
  if (p.refused == Deadline()) p.refused = now;
  p.ended = p.ended || now - p.refused >= sure_it_ended;
}

void Presence::put_off(Rank r) {
  const std::lock_guard lock(mutex_);
  gossip_.ended(r, peer(r).path, false);
  owe_locked(r);
}

void Presence::owe_locked(Rank r) {
  if (r == rank_ || peer(r).owed) return;
  peer(r).owed = true;
  owed_.push_back(r);
}

void Presence::ask(Rank r, std::chrono::milliseconds apart) {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (apart == 0ms || now - peer(r).asked >= pause_before(peer(r), apart, timeout_)) ask_locked(r, now);
}

void Presence::ask_locked(Rank r, Deadline now) {
  Peer& p = peer(r);
  if (r == rank_) return;
  p.to_ask = true;
  ++p.asks;
  p.asked = now;
  if (p.unanswered == Deadline()) p.unanswered = now;
  owe_locked(r);
}

// Asks the ranks that this one watches. In a large communicator these are the one from whom it waits for data, and the
// next rank, which may have no other watcher.
void Presence::ask_around(std::chrono::milliseconds apart) {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  const auto one = [&](Rank r) {
    if (r >= 0 && r < ranks() && r != rank_ && now - peer(r).asked >= pause_before(peer(r), apart, timeout_) &&
        !peer(r).state.head.left)
      ask_locked(r, now);
    return r >= 0 && r < ranks() && peer(r).unanswered != Deadline() && now - peer(r).unanswered > timeout_ / 4;
  };
  if (is_large(ranks())) {
    const bool waited_for = mine_.head.activity.divides == 0 && one(mine_.head.activity.waits_for);
    if (const bool next = one((rank_ + 1) % ranks()); waited_for || next)  // or is it this one that is cut off?
      for (const Rank r : gossip_.neighbours()) one(r);
    return;
  }
  for (Rank r = 0; r < ranks(); ++r) one(r);
}

std::uint32_t Presence::asked(Rank r) const {
  const std::lock_guard lock(mutex_);
  return peer(r).asks;
}

bool Presence::answered(Rank r, std::uint32_t ask) const {
  const std::lock_guard lock(mutex_);
  const Peer& p = peer(r);
  return r == rank_ || p.answers >= ask || p.state.head.left;
}

// Fails over to the next path if one fails or nothing comes back over it. Either end may do so; the other follows as
// soon as it hears from it over the new path.
void Presence::turn(Rank r, int path, Deadline now) {
  Peer& p = peer(r);
  path %= paths_.all;
  if (p.path == paths_.datagrams && path != p.path) gossip_.ended(r, p.path, false);  // some may be lost
  p.path = path;
  p.turned = now;
}

void Presence::turn_where_silent(Deadline now) {
  if (paths_.all == 1 || now - looked_for_silence_ < between_looks) return;
  looked_for_silence_ = now;
  for (Rank r = 0; r < ranks(); ++r) {
    Peer& p = peer(r);
    // Datagrams pass as soon as the link does; a wire may have to wait for a retransmission.
    const auto most = p.path == paths_.datagrams ? datagrams_longer * longest_silence() : longest_silence();
    const auto since = [&](Deadline begun) { return begun != Deadline() && now - std::max(begun, p.turned) >= most; };
    if (p.path == paths_.datagrams && now - p.turned >= before_return) turn(r, 0, now);
    const bool stuck = (p.in_flight >> p.path & 1) != 0 && since(p.told);
    if (!stuck && !since(p.unanswered)) continue;
    if (stuck) gossip_.ended(r, p.path, false);
    turn(r, p.path + 1, now);
    p.knows_left = p.knows_left && !stuck;
    p.to_ask = p.to_ask || p.unanswered != Deadline();
    if (stuck || p.to_ask) owe_locked(r);
  }
}

std::chrono::milliseconds Presence::longest_silence() const { return std::min(most_silence, timeout_ / silences); }

void Presence::begin_on(Rank r, int path) {
  const std::lock_guard lock(mutex_);
  peer(r).path = path;
}

int Presence::path(Rank r) const {
  const std::lock_guard lock(mutex_);
  return peer(r).path;
}

std::vector<Rank> Presence::take_owed() {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  turn_where_silent(now);
  judge_locked(now);
  std::vector<Rank> taken;
  std::erase_if(owed_, [&](Rank r) {
    if ((peer(r).in_flight >> peer(r).path & 1) != 0 || peer(r).repeat > now) return false;
    peer(r).owed = false;
    taken.push_back(r);
    return true;
  });
  return taken;
}

// True while a last state of this rank is unacknowledged: it must not be lost, and nobody will ask for it again.
bool Presence::has_to_tell() {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (Rank r = 0; r < ranks(); ++r) {
    Peer& p = peer(r);
    if (r == rank_ || p.can_not_be_reached(paths_, now)) continue;
    const bool asked = p.answers < p.asked_as_it_left && answers_locked(r, now);
    if (asked && p.unanswered == Deadline()) ask_locked(r, now);  // what came since was no answer to that
    // A rank that has closed may still wait until this one has closed too, or has reported what arrived.
    if (p.state.head.left ? p.owed && !p.knows_left && mine_.head.left
                          : asked || p.owed || (p.in_flight >> p.path & 1) != 0)
      return true;
  }
  return false;
}

std::size_t Presence::write_for(Rank r, int path, std::size_t room, std::vector<std::byte>& into) {
  const std::lock_guard lock(mutex_);
  const RailCounts came = arrivals ? arrivals(r) : RailCounts{};  // no older than the rails that it has left
  Peer& p = peer(r);
  ++mine_.head.version;
  mine_.head.number = ++p.messages;
  mine_.head.to = r;
  mine_.head.asks = p.to_ask ? p.asks : 0;
  mine_.head.answers = p.to_answer;
  mine_.head.arrived = came;
  p.knows_left = mine_.head.left;
  relay_locked(r, path, room);
  const std::size_t bytes = public_bytes(mine_);
  into.resize(std::max(into.size(), bytes));
  write_public(mine_, into);
  return bytes;
}

void Presence::telling(Rank r, int path) {
  const std::lock_guard lock(mutex_);
  Peer& p = peer(r);
  p.in_flight |= static_cast<std::uint8_t>(1U << path);
  p.told = Clock::now();
  p.to_ask = false;
}

void Presence::told(Rank r, int path, int error) {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  Peer& p = peer(r);
  Deadline& failing = p.failing[static_cast<std::size_t>(path)];
  p.in_flight &= static_cast<std::uint8_t>(~(1U << path));
  if (error != 0 || path != paths_.datagrams) gossip_.ended(r, path, error == 0);
  if (error == 0) {
    failing = {};
    if (path == p.path) p.repeat = {};
    if (gossip_.owes(r)) owe_locked(r);
    return;
  }
  if (failing == Deadline()) failing = now;
  p.repeat = now + between_repeats;
  if (path == p.path) turn(r, path + 1, now);
  p.to_ask = p.to_ask || p.unanswered != Deadline();
  if (!p.state.head.left) owe_locked(r);
}

bool Presence::hear(const PublicState& s, int path) {
  const Rank from = s.head.from;
  if (from < 0 || from == rank_ || s.head.to != rank_ || !names_ranks_of(s.head, ranks())) return false;
  {
    const std::lock_guard lock(mutex_);
    if (!peer(from).came.take(s.head.number)) return false;
  }
  if (rank_ == 0 && s.head.gives_up) settle(Outcome::dropped);
  const std::lock_guard lock(mutex_);
  rails_left_.store((rails_left() | RailSet(s.head.rails_left)).word(), std::memory_order_release);
  if (hear_of_end(s.head) && is_large(ranks())) owe_all_locked();
  Peer& p = peer(from);
  p.heard = Clock::now();
  if (p.unanswered != Deadline() && s.head.answers > p.answers) p.round = p.heard - p.unanswered;
  p.unanswered = p.refused = p.failing[static_cast<std::size_t>(path)] = {};
  p.ended = false;
  if (path != p.path) turn(from, path, p.heard);
  if (s.head.version > p.version) {
    p.version = s.head.version;
    PublicState now = s;
    now.relayed.clear();
    if (p.state.head.version > p.version) take_relayed(now, p.state);
    p.state = std::move(now);
  }
  p.answers = std::max(p.answers, s.head.answers);
  gossip_.came(from, from, s.head.edition);
  hear_relayed(from, s.relayed);
  if (s.head.survey > mine_.head.survey && is_large(ranks())) {
    mine_.head.survey = s.head.survey;
    publish_locked();
  }
  for (const Rank r : gossip_.neighbours())
    if (gossip_.owes(r) && !peer(r).state.head.left) owe_locked(r);
  if (s.head.asks == 0) return true;
  p.to_answer = std::max(p.to_answer, s.head.asks);
  owe_locked(from);
  return true;
}

void Presence::set_progress(std::function<void()> f) {
  const std::lock_guard lock(progress_mutex_);
  progress_ = std::move(f);
}

void Presence::progress() {
  const std::lock_guard lock(progress_mutex_);
  if (progress_) progress_();
}

}  // namespace trellis::ccl::libfabric
