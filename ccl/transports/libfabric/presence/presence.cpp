#include "ccl/transports/libfabric/presence/presence.h"

#include <unistd.h>

#include <algorithm>

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr Rank most_asked = 32;        // ranks of a communicator in which everybody asks everybody
constexpr auto sure_it_fails = 300ms;  // for which messages to a peer must have failed
constexpr auto between_repeats = 20ms;
constexpr auto between_looks = 20ms;
constexpr std::chrono::milliseconds longest_silence = 500ms;  // of a path, before another is tried
constexpr int silences = 8;                                   // in the timeout, at least

}  // namespace

Presence::Presence(std::uint64_t identity, Rank rank, std::vector<std::size_t> places, std::vector<Member> members,
                   std::chrono::milliseconds timeout, int paths)
    : identity_(identity),
      rank_(rank),
      places_(std::move(places)),
      members_(std::move(members)),
      timeout_(timeout),
      paths_(paths),
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
  if (p.state.head.left) return false;
  const Member& m = member(r);
  if (m.home == member(rank_).home && m.process != getpid()) {
    if (!p.process) p.process = Process::of(static_cast<pid_t>(m.process));
    return p.process->runs();
  }
  if (fails(p, now)) return false;
  return p.unanswered == Deadline() || now - p.unanswered < timeout_ * 3 / 4;
}

// In a large communicator, rank 0 alone knows of all, and the others of none.
std::vector<Rank> Presence::not_joined() const {
  std::vector<Rank> missing;
  if (rank_ != 0 && ranks() > most_asked) return missing;
  const std::lock_guard lock(mutex_);
  for (Rank r = 0; r < ranks(); ++r)
    if (r == rank_ ? !mine_.head.joined : !peer(r).state.head.joined) missing.push_back(r);
  return missing;
}

Outcome Presence::settle(Outcome wanted) {
  const std::vector<Rank> absent = not_joined();
  if (!absent.empty()) missing_ = absent.front();  // before the outcome, which makes it be read
  Outcome known = Outcome::open;
  if (!outcome_.compare_exchange_strong(known, wanted)) return known;
  announce(
      [&](PublicState& s) {
        s.head.outcome = wanted;
        s.head.missing = missing_;
      },
      true);
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

// A path that fails, or over which nothing comes back, is changed for the next: by either end, which the other follows
// as soon as it hears of it over that path.
void Presence::turn(Peer& p, int path, Deadline now) const {
  p.path = path % paths_;
  p.turned = now;
}

void Presence::turn_where_silent(Deadline now) {
  if (paths_ == 1 || now - looked_for_silence_ < between_looks) return;
  looked_for_silence_ = now;
  const auto silence = std::min(longest_silence, timeout_ / silences);
  for (Rank r = 0; r < ranks(); ++r) {
    Peer& p = peer(r);
    const auto since = [&](Deadline begun) {
      return begun != Deadline() && now - std::max(begun, p.turned) >= silence;
    };
    const bool stuck = (p.in_flight >> p.path & 1) != 0 && since(p.told);
    if (!stuck && !since(p.unanswered)) continue;
    turn(p, p.path + 1, now);
    if (stuck) {
      p.knows_left = false;
      owe_locked(r);
    }
    p.to_ask = p.to_ask || p.unanswered != Deadline();
  }
}

int Presence::path(Rank r) const {
  const std::lock_guard lock(mutex_);
  return peer(r).path;
}

std::vector<Rank> Presence::take_owed() {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  turn_where_silent(now);
  std::vector<Rank> taken;
  std::erase_if(owed_, [&](Rank r) {
    if ((peer(r).in_flight >> peer(r).path & 1) != 0 || peer(r).repeat > now) return false;
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
    return p.state.head.left ? p.owed && !p.knows_left && mine_.head.left : p.owed || (p.in_flight >> p.path & 1) != 0;
  });
}

std::size_t Presence::write_for(Rank r, std::vector<std::byte>& into) {
  const std::lock_guard lock(mutex_);
  const RailCounts came = arrivals ? arrivals(r) : RailCounts{};  // no older than the rails that it has left
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
  if (error == 0) {
    failing = {};
    if (path == p.path) p.repeat = {};
    return;
  }
  if (failing == Deadline()) failing = now;
  p.repeat = now + between_repeats;
  if (path == p.path) turn(p, path + 1, now);
  p.to_ask = p.to_ask || p.unanswered != Deadline();
  if (!p.state.head.left) owe_locked(r);
}

bool Presence::fails(const Peer& p, Deadline now) const {
  return std::all_of(p.failing.begin(), p.failing.begin() + paths_, [&](Deadline since) {
    return since != Deadline() && since > p.heard && now - since > sure_it_fails;
  });
}

void Presence::hear(const PublicState& s, int path) {
  const Rank from = s.head.from;
  if (from < 0 || from == rank_ || !names_ranks_of(s.head, ranks())) return;
  Rank none = -1;
  if (s.head.lost >= 0) lost_.compare_exchange_strong(none, s.head.lost);
  none = -1;
  if (s.head.aborted >= 0) aborted_.compare_exchange_strong(none, s.head.aborted);
  if (s.head.rails_left != 0) rails_left_.fetch_or(s.head.rails_left, std::memory_order_release);
  if (from == 0 && s.head.missing >= 0) missing_ = s.head.missing;  // before the outcome, as above
  Outcome open = Outcome::open;
  if (from == 0 && s.head.outcome != Outcome::open) outcome_.compare_exchange_strong(open, s.head.outcome);
  if (rank_ == 0 && s.head.gives_up) settle(Outcome::dropped);
  const std::lock_guard lock(mutex_);
  Peer& p = peer(from);
  p.heard = Clock::now();
  p.unanswered = p.failing[static_cast<std::size_t>(path)] = {};
  if (path != p.path) turn(p, path, p.heard);
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
