// Decides whose word counts: a rank that hears nothing of another may itself be cut off.
#include <unistd.h>

#include "ccl/transports/libfabric/presence/neighbours.h"
#include "ccl/transports/libfabric/presence/presence.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds longest_judgement = 2000ms;  // for the answer of a rank that has much else to do
constexpr int judgements = 4;                                    // in the timeout

}  // namespace

bool Presence::is_neighbour(Rank r) const {
  return member(r).home == member(rank_).home && member(r).process != getpid();
}

bool Presence::answers_locked(Rank r, Deadline now) {
  Peer& p = peer(r);
  if (!is_neighbour(r))
    return !p.ended && !p.can_not_be_reached(paths_, now) && silence_locked(r, now) < timeout_ * 3 / 4;
  if (!p.process) p.process = Process::of(static_cast<pid_t>(member(r).process));
  return p.process->runs();
}

// True if this rank hears nothing of most others: it is more likely cut off itself than they all are.
bool Presence::cut_off() {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  Rank silent = 0, answering = 1;
  for (Rank r = 0; r < ranks(); ++r) {
    if (r == rank_ || peer(r).ended || peer(r).state.head.left) continue;
    const bool near = is_neighbour(r);
    if (!near && (silence_locked(r, now) >= timeout_ / 2 || peer(r).can_not_be_reached(paths_, now)))
      ++silent;
    else if (near || now - peer(r).heard < timeout_ / 2)
      ++answering;
  }
  return silent > answering;
}

// Reports that this rank hears nothing of another as a suspicion, which the others judge.
void Presence::mark_lost(Rank r) {
  Rank none = -1;
  const bool first = lost_.compare_exchange_strong(none, r);
  const Deadline now = Clock::now();
  announce([&](PublicState& s) {
    const bool unheard = r != rank_ && !is_neighbour(r) && !peer(r).state.head.left &&
                         peer(r).unanswered != Deadline() && !answers_locked(r, now);
    if (!first || !unheard)
      s.head.lost = s.head.suspected_by == rank_ ? -1 : lost_.load();
    else
      s.head.suspect = r, s.head.suspected_by = rank_;
  });
}

// Takes in a suspicion. True: it is new here.
bool Presence::suspect_locked(const PublicHead& h) {
  PublicHead& mine = mine_.head;
  if (h.suspect < 0 || h.suspected_by < 0 || mine.suspect >= 0 || h.suspected_by == rank_) return false;
  mine.suspect = h.suspect;
  mine.suspected_by = h.suspected_by;
  if (lost_ >= 0) return false;
  suspected_ = Clock::now();
  for (Rank r = 0; r < ranks(); ++r)
    if ((r == h.suspect || h.suspect == rank_) && (!is_large(ranks()) || peer(r).heard != Deadline()))
      ask_locked(r, suspected_);
  return true;
}

// A majority is believed before one rank: a rank that still hears the suspect takes the accuser for lost. A rank that
// is itself suspected does so if it hears most of the others.
void Presence::judge_locked(Deadline now) {
  if (suspected_ == Deadline()) return;
  const Rank suspect = mine_.head.suspect, by = mine_.head.suspected_by;
  const auto heard = [&](Rank r) {  // a process of this host that is stopped runs, and answers nobody
    if (!is_neighbour(r)) return peer(r).heard > suspected_;
    return answers_locked(r, now) && !process_stopped(member(r).process);
  };
  Rank hears = 0, of = 0;
  for (Rank r = 0; r < ranks(); ++r) {
    if (suspect == rank_ ? r == by || r == rank_ || is_neighbour(r) : r != suspect) continue;
    ++of;
    hears += heard(r) ? 1 : 0;
  }
  const bool refuted = 2 * hears > of;
  const bool confirmed = suspect != rank_ && (peer(suspect).state.head.left || !answers_locked(suspect, now));
  const bool over = now - suspected_ >= std::min(longest_judgement, timeout_ / judgements);
  if (lost_ < 0 && !refuted && !confirmed && !over) return;
  suspected_ = {};
  Rank none = -1;
  if (!lost_.compare_exchange_strong(none, refuted ? by : suspect)) return;
  mine_.head.lost = lost_;
  owe_all_locked();
}

Rank Presence::heard_by_others() const {
  const std::lock_guard lock(mutex_);
  return lost() >= 0 && lost() == mine_.head.suspected_by ? mine_.head.suspect : -1;
}

}  // namespace trellis::ccl::libfabric
