#include "ccl/transports/libfabric/presence/heartbeats.h"

#include <algorithm>

#include "ccl/transports/libfabric/presence/gossip_neighbours.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr int asks = 16;  // a silent rank is asked at least so often in the timeout

}  // namespace

Heartbeats::Heartbeats(const Roster& roster, PublishedStates& states, FailureDetector& detector, ControlQueue& queue)
    : roster_(roster),
      states_(states),
      detector_(detector),
      queue_(queue),
      peers_(static_cast<std::size_t>(roster.ranks())) {}

// The pause between two requests to a rank grows with the time that its answers take: over a slow link, requests would
// take bandwidth from data.
bool Heartbeats::is_time(Rank r, Deadline now, Clock::duration apart) const {
  const Peer& p = peer(r);
  const Deadline unanswered = detector_.unanswered(r);
  const Clock::duration silent = unanswered == Deadline() ? Clock::duration{} : p.asked - unanswered;
  const auto pause = std::clamp<Clock::duration>(std::max(2 * p.round, silent / 4), apart,
                                                 std::max<Clock::duration>(apart, detector_.timeout() / asks));
  return now - p.asked >= pause;
}

void Heartbeats::ask(Rank r, Deadline now, std::chrono::milliseconds apart) {
  if (r == roster_.rank() || (apart != 0ms && !is_time(r, now, apart))) return;
  Peer& p = peer(r);
  p.to_ask = true;
  ++p.asks;
  p.asked = now;
  detector_.asked(r, now);
  queue_.owe(r);
}

// Asks the ranks that this one watches. In a large communicator these are the one from whom it waits for data, and the
// next rank, which may have no other watcher.
void Heartbeats::ask_around(Deadline now, std::chrono::milliseconds apart) {
  const Rank ranks = roster_.ranks();
  const auto one = [&](Rank r) {
    if (r < 0 || r >= ranks) return false;
    if (is_time(r, now, apart) && !states_.left(r)) ask(r, now);
    const Deadline unanswered = detector_.unanswered(r);
    return unanswered != Deadline() && now - unanswered > detector_.timeout() / 4;
  };
  if (!is_large(ranks)) {
    for (Rank r = 0; r < ranks; ++r) one(r);
    return;
  }
  const RankActivity& mine = states_.of(roster_.rank()).head.activity;
  const bool waited_for = mine.divides == 0 && one(mine.waits_for);
  // If one of them is silent, this rank may be cut off itself. So it asks its neighbours, too: their answers will tell.
  if (const bool next = one((roster_.rank() + 1) % ranks); waited_for || next)
    for (const Rank r : queue_.gossip().neighbours()) one(r);
}

std::uint32_t Heartbeats::begin_survey() {
  states_.spread();
  return ++survey_;
}

bool Heartbeats::surveyed(Rank r, std::uint32_t survey) const {
  return (r == roster_.rank() ? survey_ : states_.of(r).head.survey) >= survey || states_.left(r);
}

void Heartbeats::hear(const PublicStateHeader& h, Deadline now) {
  Peer& p = peer(h.from);
  if (const Deadline asked = detector_.unanswered(h.from); asked != Deadline() && h.answers > p.answers)
    p.round = now - asked;
  p.answers = std::max(p.answers, h.answers);
  if (h.survey > survey_ && is_large(roster_.ranks())) {
    survey_ = h.survey;
    states_.spread();
  }
  if (h.asks == 0) return;
  p.to_answer = std::max(p.to_answer, h.asks);
  queue_.owe(h.from);
}

void Heartbeats::write(PublicStateHeader& h) const {
  const Peer& p = peer(h.to);
  h.asks = p.to_ask ? p.asks : 0;
  h.answers = p.to_answer;
  h.survey = survey_;
}

void Heartbeats::repeat(Rank r) {
  if (detector_.unanswered(r) != Deadline()) peer(r).to_ask = true;
}

}  // namespace trellis::ccl::libfabric
