#include "ccl/transports/libfabric/presence/failure_detector.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto sure_it_fails = 300ms;
constexpr auto sure_it_ended = 200ms;  // between two refused connections to a rank that is not heard
constexpr int pauses = 8;              // only a pause of this process that is longer than timeout / pauses is noticed

}  // namespace

FailureDetector::FailureDetector(const Roster& roster, const PublishedStates& states, std::chrono::milliseconds timeout,
                                 ControlPaths paths)
    : roster_(roster),
      states_(states),
      timeout_(timeout),
      paths_(paths.all),
      peers_(static_cast<std::size_t>(roster.ranks())) {}

void FailureDetector::look(Deadline now) {
  const Deadline before = std::exchange(looked_, now);
  const Clock::duration paused = now - before;
  if (before == Deadline() || paused <= timeout_ / pauses) return;
  const auto excuse = [&](Deadline& since) {
    if (since != Deadline()) since = std::min(since + paused, now);
  };
  for (Peer& p : peers_) {
    for (Deadline* const since : {&p.unanswered, &p.data_heard, &p.refused, &p.stuck}) excuse(*since);
    for (Deadline& failing : p.failing)
      if (failing > p.heard) excuse(failing);
  }
}

void FailureDetector::heard(Rank r, int path, Deadline now) {
  Peer& p = peer(r);
  p.heard = now;
  p.unanswered = p.refused = p.failing[static_cast<std::size_t>(path)] = {};
  p.ended = false;
}

void FailureDetector::sent(Rank r, int path, bool well, Deadline now) {
  Deadline& failing = peer(r).failing[static_cast<std::size_t>(path)];
  if (well)
    failing = {};
  else if (failing == Deadline())
    failing = now;
}

// A firewall may refuse for a moment what it let pass before. So a refusal counts if it happens twice and nothing comes
// from that rank in between over another path.
void FailureDetector::refused(Rank r, Deadline now) {
  look(now);
  Peer& p = peer(r);
  if (p.refused == Deadline()) p.refused = now;
  p.ended = p.ended || now - p.refused >= sure_it_ended;
}

bool FailureDetector::answers(Rank r, Deadline now) {
  Peer& p = peer(r);
  if (!roster_.visible(r)) return !p.ended && reachable(r, now) && without_sign_of_life(r, now) < timeout_ * 3 / 4;
  if (!p.process) p.process = ProcessHandle::of(static_cast<pid_t>(roster_.member(r).process));
  return p.process->runs();
}

bool FailureDetector::reachable(Rank r, Deadline now) {
  look(now);
  const Peer& p = peer(r);
  return std::any_of(p.failing.begin(), p.failing.begin() + paths_, [&](Deadline since) {
    return since == Deadline() || since <= p.heard || now - since <= sure_it_fails;
  });
}

// Data that come from a rank count as heartbeats, too: a slow link may be full of them.
Clock::duration FailureDetector::without_sign_of_life(Rank r, Deadline now) {
  look(now);
  Peer& p = peer(r);
  const bool takes_data = p.stuck == Deadline() || !states_.of(r).head.activity.running;
  if (p.unanswered == Deadline()) return takes_data ? Clock::duration{} : now - p.stuck;
  const RailCounts counts = states_.arrivals(r);
  const std::uint64_t came = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (came != p.data_came) p.data_heard = now;
  p.data_came = came;
  return now - std::max(p.unanswered, p.data_heard);
}

std::chrono::milliseconds FailureDetector::silence(Rank r, Deadline now) {
  if (r == roster_.rank() || roster_.visible(r) || peer(r).ended || states_.left(r)) return {};
  Clock::duration silent = without_sign_of_life(r, now);
  if (const Peer& p = peer(r); !reachable(r, now)) {
    const Deadline since = *std::max_element(p.failing.begin(), p.failing.begin() + paths_);  // over every path
    silent = std::max(silent, now - (p.heard == Deadline() ? since : p.heard));
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(silent);
}

// True if this rank hears nothing of most others: it is more likely cut off itself than they all are.
bool FailureDetector::cut_off(Deadline now) {
  Rank silent = 0, answering = 1;
  for (Rank r = 0; r < roster_.ranks(); ++r) {
    if (r == roster_.rank() || peer(r).ended || states_.left(r)) continue;
    const bool near = roster_.visible(r);
    if (!near && (without_sign_of_life(r, now) >= timeout_ / 2 || !reachable(r, now)))
      ++silent;
    else if (near || now - peer(r).heard < timeout_ / 2)
      ++answering;
  }
  return silent > answering;
}

}  // namespace trellis::ccl::libfabric
