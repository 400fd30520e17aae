#include "ccl/transports/libfabric/presence/presence.h"

#include <utility>

#include "ccl/transports/libfabric/presence/gossip_neighbours.h"

namespace trellis::ccl::libfabric {

Presence::Presence(Roster roster, std::chrono::milliseconds timeout, ControlPaths paths)
    : roster_(std::move(roster)),
      queue_(roster_.rank(), roster_.ranks(), paths, timeout),
      states_(roster_.identity(), roster_.rank(), roster_.ranks(), queue_),
      detector_(roster_, states_, timeout, paths),
      heartbeats_(roster_, states_, detector_, queue_),
      verdict_(roster_, states_, detector_, heartbeats_, queue_),
      joining_(roster_.rank(), roster_.ranks(), states_, queue_),
      goodbyes_(static_cast<std::size_t>(roster_.ranks())) {}

std::vector<Rank> Presence::take_owed() {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  detector_.look(now);
  if (speaks(now)) {
    const auto unanswered = [&](Rank r) { return states_.left(r) ? Deadline() : detector_.unanswered(r); };
    for (const auto [r, lost] : queue_.fail_over(unanswered, now)) {
      goodbye(r).told = goodbye(r).told && !lost;
      heartbeats_.repeat(r);
    }
  }
  verdict_.judge(now);
  return queue_.take(now);
}

std::size_t Presence::write_for(Rank r, int path, std::size_t room, std::vector<std::byte>& into) {
  const std::lock_guard lock(mutex_);
  PublicStateHeader& head = states_.begin_message(r);
  heartbeats_.write(head);
  verdict_.write(head);
  joining_.write(head);
  goodbye(r).told = head.left;
  return states_.write(r, path, room, into);
}

void Presence::sending(Rank r, int path) {
  const std::lock_guard lock(mutex_);
  queue_.sending(r, path, Clock::now());
  heartbeats_.sending(r);
}

void Presence::sent(Rank r, int path, int error) {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  queue_.sent(r, path, error == 0, now);
  detector_.sent(r, path, error == 0, now);
  if (error == 0) return;
  heartbeats_.repeat(r);
  if (speaks(now) && !states_.left(r)) queue_.owe(r);
}

bool Presence::hear(const PublicState& s, int path) {
  const std::lock_guard lock(mutex_);
  if (!states_.accept(s.head)) return false;
  const Deadline now = Clock::now();
  const bool settled = joining_.hear(s.head), failed = verdict_.hear(s.head, now);
  if ((settled || failed) && is_large(roster_.ranks())) queue_.owe_all();
  heartbeats_.hear(s.head, now);
  detector_.heard(s.head.from, path, now);
  queue_.heard(s.head.from, path, now);
  states_.take(s);
  return true;
}

void Presence::leave() {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  states_.publish([](PublicState& s) { s.head.left = true; });
  for (Rank r = 0; r < roster_.ranks(); ++r)
    if (queue_.owes(r) && !states_.left(r)) {
      heartbeats_.ask(r, now);
      goodbye(r).ask = heartbeats_.asked(r);
    }
}

// True while a last state of this rank is unacknowledged: it must not be lost, and nobody will ask for it again.
bool Presence::has_to_tell() {
  const Deadline now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (Rank r = 0; r < roster_.ranks(); ++r) {
    if (r == roster_.rank() || !detector_.reachable(r, now)) continue;
    const bool asked = !heartbeats_.answered(r, goodbye(r).ask) && detector_.answers(r, now);
    if (asked && detector_.unanswered(r) == Deadline())
      heartbeats_.ask(r, now);  // what came since did not answer this request
    // A rank that has left need only be told that this rank has left, too: it may wait for that, or for the answer in
    // the same message.
    if (states_.left(r) ? queue_.owes(r) && !goodbye(r).told && states_.left(roster_.rank())
                        : asked || queue_.owes(r) || queue_.under_way(r))
      return true;
  }
  return false;
}

void Presence::retire() {
  const std::lock_guard lock(mutex_);
  retired_ = Clock::now();
}

// A rank repeats its goodbye for the timeout, so that a peer that was stopped meanwhile still hears it.
bool Presence::speaks(Deadline now) const { return retired_ == Deadline() || now - retired_ < detector_.timeout(); }

void Presence::set_progress(std::function<void()> f) {
  const std::lock_guard lock(progress_mutex_);
  progress_ = std::move(f);
}

void Presence::progress() {
  const std::lock_guard lock(progress_mutex_);
  if (progress_) progress_();
}

}  // namespace trellis::ccl::libfabric
