#include "ccl/transports/libfabric/presence/failure_agreement.h"

#include <algorithm>
#include <utility>

#include "ccl/transports/libfabric/presence/gossip_neighbours.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds longest_judgement = 2000ms;  // time for a busy rank to answer
constexpr int judgements = 4;                                    // the timeout is at least this many times as long
constexpr int looks_in_judgement = 4;                            // fewer looks in that time: this process was paused

bool set_first(std::atomic<Rank>& first, Rank r) {
  Rank none = -1;
  return r >= 0 && first.compare_exchange_strong(none, r);
}

}  // namespace

FailureAgreement::FailureAgreement(const Roster& roster, const PublishedStates& states, FailureDetector& detector,
                                   Heartbeats& heartbeats, ControlQueue& queue)
    : roster_(roster), states_(states), detector_(detector), heartbeats_(heartbeats), queue_(queue) {}

Rank FailureAgreement::heard_by_others() const { return lost() >= 0 && lost() == suspected_by_ ? suspect_.load() : -1; }

bool FailureAgreement::alive(Rank r, Deadline now) {
  if (r == roster_.rank()) return true;
  if (suspected_ != Deadline() && r == suspected_by_) return true;  // alive until its suspicion has been judged
  return !states_.left(r) && detector_.answers(r, now);
}

// Marks a rank as lost. If this rank merely hears nothing of it, it reports that as a suspicion, which the others
// judge.
void FailureAgreement::mark_lost(Rank r, Deadline now) {
  const bool unheard = r != roster_.rank() && !roster_.visible(r) && !states_.left(r) &&
                       detector_.unanswered(r) != Deadline() && !detector_.answers(r, now);
  if (set_first(lost_, r) && unheard) suspected_by_ = roster_.rank(), suspect_ = r;
  queue_.owe_all();
}

void FailureAgreement::mark_aborted() {
  set_first(aborted_, roster_.rank());
  queue_.owe_all();
}

bool FailureAgreement::hear(const PublicStateHeader& h, Deadline now) {
  rails_left_.store((rails_left() | RailSet(h.rails_left)).word(), std::memory_order_release);
  bool fresh = set_first(lost_, h.lost);
  fresh = suspect(h, now) || fresh;
  return set_first(aborted_, h.aborted) || fresh;
}

// Takes in a suspicion. True: it is new here, and is to be judged.
bool FailureAgreement::suspect(const PublicStateHeader& h, Deadline now) {
  const Rank self = roster_.rank();
  if (h.suspect < 0 || h.suspected_by < 0 || suspect_ >= 0 || h.suspected_by == self) return false;
  suspect_ = h.suspect;
  suspected_by_ = h.suspected_by;
  if (lost_ >= 0) return false;
  suspected_ = judged_ = now;
  paused_ = {};
  for (Rank r = 0; r < roster_.ranks(); ++r)
    if ((r == h.suspect || h.suspect == self) && (!is_large(roster_.ranks()) || detector_.last_heard(r) != Deadline()))
      heartbeats_.ask(r, now);
  return true;
}

// True once the time for a judgement has passed. Only time in which this process ran counts: while the whole job was
// suspended, no rank could answer.
bool FailureAgreement::is_over(Deadline now) {
  const Clock::duration allowed = std::min<Clock::duration>(longest_judgement, detector_.timeout() / judgements);
  const Clock::duration gap = now - std::exchange(judged_, now);
  paused_ += std::max(gap - allowed / looks_in_judgement, Clock::duration());
  return now - suspected_ - paused_ >= allowed;
}

// Decides whether the suspect or its accuser is lost. A majority is believed before one rank: a rank that still hears
// the suspect takes the accuser for lost; a rank that is itself suspected does so if it hears most of the others.
void FailureAgreement::judge(Deadline now) {
  if (suspected_ == Deadline()) return;
  const Rank suspect = suspect_, by = suspected_by_, self = roster_.rank();
  const auto heard = [&](Rank r) {  // a stopped process of this host still exists, but answers nobody
    if (!roster_.visible(r)) return detector_.last_heard(r) > suspected_;
    return detector_.answers(r, now) && !process_stopped(roster_.member(r).process);
  };
  Rank hears = 0, of = 0;
  for (Rank r = 0; r < roster_.ranks(); ++r) {
    if (suspect == self ? r == by || r == self || roster_.visible(r) : r != suspect) continue;
    ++of;
    hears += heard(r) ? 1 : 0;
  }
  const bool refuted = 2 * hears > of;
  const bool confirmed = suspect != self && (states_.left(suspect) || !detector_.answers(suspect, now));
  const bool over = is_over(now);
  if (lost_ < 0 && !refuted && !confirmed && !over) return;
  suspected_ = {};
  if (set_first(lost_, refuted ? by : suspect)) queue_.owe_all();
}

void FailureAgreement::write(PublicStateHeader& h) const {
  h.lost = suspected_by_ == roster_.rank() ? -1 : lost();
  h.aborted = aborted();
  h.suspect = suspect_;
  h.suspected_by = suspected_by_;
}

}  // namespace trellis::ccl::libfabric
