#include "ccl/transports/libfabric/presence/presence.h"

#include <unistd.h>

#include <algorithm>

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr Rank most_asked = 32;        // ranks of a communicator in which everybody asks everybody
constexpr auto sure_it_fails = 300ms;  // for which messages to a peer must have failed
constexpr auto between_repeats = 20ms;

}  // namespace

Presence::Presence(std::uint64_t identity, Rank rank, std::vector<std::size_t> places, std::vector<Member> members,
                   std::chrono::milliseconds timeout)
    : identity_(identity),
      rank_(rank),
      places_(std::move(places)),
      members_(std::move(members)),
      timeout_(timeout),
      peers_(places_.size()) {
  mine_.head.communicator = identity;
  mine_.head.from = rank;
  for (const Member& m : members_) one_host_ = one_host_ && m.host == members_.front().host;
}

void Presence::change(const std::function<void(PublicState&)>& f) {
  const std::lock_guard lock(mutex_);
  f(mine_);
}

void Presence::announce(const std::function<void(PublicState&)>& f, bool to_all) {
  const std::lock_guard lock(mutex_);
  f(mine_);
  for (Rank r = 0; r < ranks(); ++r)
    if (to_all || ranks() <= most_asked || r == 0 || peer(r).heard != Deadline()) owe_locked(r);
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

std::uint8_t Presence::rails_left_by(Rank r) const {
  const std::lock_guard lock(mutex_);
  return r == rank_ ? mine_.head.rails_left : peer(r).state.head.rails_left;
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
  if (p.state.head.left) return false;
  const Member& m = member(r);
  if (m.home == member(rank_).home && m.process != getpid()) {
    if (!p.process) p.process = Process::of(static_cast<pid_t>(m.process));
    return p.process->runs();
  }
  if (fails(p, now)) return false;
  return p.unanswered == Deadline() || now - p.unanswered < timeout_ * 3 / 4;
}

// In a large communicator, rank 0 alone knows of all.
std::vector<Rank> Presence::not_joined() const {
  std::vector<Rank> missing;
  if (rank_ != 0 && ranks() > most_asked) return {0};
  const std::lock_guard lock(mutex_);
  for (Rank r = 0; r < ranks(); ++r)
    if (r == rank_ ? !mine_.head.joined : !peer(r).state.head.joined) missing.push_back(r);
  return missing;
}

Outcome Presence::settle(Outcome wanted) {
  Outcome known = Outcome::open;
  if (!outcome_.compare_exchange_strong(known, wanted)) return known;
  announce([&](PublicState& s) { s.head.outcome = wanted; }, true);
  return wanted;
}

void Presence::mark_lost(Rank r) {
  Rank none = -1;
  lost_.compare_exchange_strong(none, r);
  announce([&](PublicState& s) { s.head.lost = lost_; }, true);
}

void Presence::mark_aborted() {
  Rank none = -1;
  aborted_.compare_exchange_strong(none, rank_);
  announce([&](PublicState& s) { s.head.aborted = aborted_; }, true);
}

void Presence::owe(Rank r) {
  const std::lock_guard lock(mutex_);
  owe_locked(r);
}

void Presence::owe_locked(Rank r) {
  if (r == rank_ || peer(r).owed) return;
  peer(r).owed = true;
  owed_.push_back(r);
}

void Presence::ask(Rank r) {
  const std::lock_guard lock(mutex_);
  ask_locked(r, Clock::now());
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

// In a large communicator, those for whom it waits, and for whom they wait.
void Presence::ask_around(std::chrono::milliseconds apart) {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  const auto one = [&](Rank r) {
    if (r >= 0 && r < ranks() && r != rank_ && now - peer(r).asked >= apart && !peer(r).state.head.left)
      ask_locked(r, now);
  };
  if (ranks() <= most_asked) {
    for (Rank r = 0; r < ranks(); ++r) one(r);
    return;
  }
  Rank at = mine_.head.activity.waits_for;
  for (int hops = 0; hops < most_asked && at >= 0 && at < ranks() && at != rank_; ++hops) {
    one(at);
    at = peer(at).state.head.activity.waits_for;
  }
  one((rank_ + 1) % ranks());
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

std::vector<Rank> Presence::take_owed() {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  std::vector<Rank> taken;
  std::erase_if(owed_, [&](Rank r) {
    if (peer(r).in_flight || peer(r).repeat > now) return false;
    peer(r).owed = false;
    taken.push_back(r);
    return true;
  });
  return taken;
}

bool Presence::has_to_tell() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(peers_, [&](const Peer& p) {
    if (fails(p, Clock::now())) return false;
    // One that has left may still wait until this has left too, or has told what arrived.
    return p.state.head.left ? p.owed && !p.knows_left && mine_.head.left : p.owed || p.in_flight;
  });
}

std::size_t Presence::write_for(Rank r, std::vector<std::byte>& into) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t came = arrived ? arrived(r) : 0;  // no older than the rails that it has left
  Peer& p = peer(r);
  ++mine_.head.version;
  mine_.head.asks = p.to_ask ? p.asks : 0;
  mine_.head.answers = p.to_answer;
  mine_.head.arrived = came;
  p.knows_left = mine_.head.left;
  const std::size_t bytes = public_bytes(mine_);
  into.resize(std::max(into.size(), bytes));
  write_public(mine_, into);
  return bytes;
}

void Presence::telling(Rank r) {
  const std::lock_guard lock(mutex_);
  peer(r).in_flight = true;
  peer(r).to_ask = false;
}

void Presence::told(Rank r, int error) {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  Peer& p = peer(r);
  p.in_flight = false;
  if (error == 0) {
    p.failing = p.repeat = {};
    return;
  }
  if (p.failing == Deadline()) p.failing = now;
  p.repeat = now + between_repeats;
  p.to_ask = p.to_ask || p.unanswered != Deadline();
  if (!p.state.head.left) owe_locked(r);
}

bool Presence::fails(const Peer& p, Deadline now) const {
  return p.failing != Deadline() && p.failing > p.heard && now - p.failing > sure_it_fails;
}

void Presence::hear(const PublicState& s) {
  const Rank from = s.head.from;
  if (from < 0 || from == rank_ || !names_ranks_of(s.head, ranks())) return;
  Rank none = -1;
  if (s.head.lost >= 0) lost_.compare_exchange_strong(none, s.head.lost);
  none = -1;
  if (s.head.aborted >= 0) aborted_.compare_exchange_strong(none, s.head.aborted);
  if (s.head.rails_left != 0) rails_left_.fetch_or(s.head.rails_left, std::memory_order_release);
  Outcome open = Outcome::open;
  if (from == 0 && s.head.outcome != Outcome::open) outcome_.compare_exchange_strong(open, s.head.outcome);
  if (rank_ == 0 && s.head.gives_up) settle(Outcome::dropped);
  const std::lock_guard lock(mutex_);
  Peer& p = peer(from);
  p.heard = Clock::now();
  p.unanswered = p.failing = {};
  if (s.head.version > p.state.head.version) p.state = s;
  p.answers = std::max(p.answers, s.head.answers);
  if (s.head.asks == 0) return;
  p.to_answer = std::max(p.to_answer, s.head.asks);
  owe_locked(from);
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
