#include "device/libnrt/peers/rendezvous.h"

#include <algorithm>

#include "device/libnrt/status_error.h"

namespace trellis::device::nrt {

struct LocalRendezvous::Meeting {
  std::string signature;
  std::vector<Bytes> brought;
  std::vector<bool> here;
  std::uint32_t come = 0, gone = 0;
  Status spoilt = Status::success;  // another one: signatures differ, a member gave up, or nrt_close was called
  std::string why;
  std::condition_variable changed;
};

// The first meeting with this key that this member has not come to yet.
std::shared_ptr<LocalRendezvous::Meeting> LocalRendezvous::meeting_for(const Contribution& c) {
  auto& turn = meetings_[c.key];
  for (const auto& meeting : turn)
    if (!meeting->here[c.member]) return meeting;
  auto meeting = std::make_shared<Meeting>();
  meeting->signature = c.signature;
  meeting->brought.resize(c.members);
  meeting->here.resize(c.members);
  turn.push_back(meeting);
  return meeting;
}

std::vector<Bytes> LocalRendezvous::meet(const Contribution& c, net::Deadline deadline) {
  if (c.members == 0 || c.member >= c.members)
    refuse(Status::invalid, "member {} of {}: expected 0 to {}", c.member, c.members, static_cast<int>(c.members) - 1);
  std::unique_lock lock(mutex_);
  if (stopped_) refuse(Status::closed, "nrt_close was called");
  const std::string key = fmt::format("{} {}", c.key, c.members);
  Contribution keyed{key, c.signature, c.member, c.members, {}};
  const auto meeting = meeting_for(keyed);
  meeting->here[c.member] = true;
  meeting->brought[c.member] = c.bytes;
  ++meeting->come;
  const auto is_spoilt = [&] { return meeting->spoilt != Status::success; };
  if (!is_spoilt() && meeting->signature != c.signature) {
    meeting->spoilt = Status::invalid;
    meeting->why = fmt::format("members call '{}' and '{}' at the same time", meeting->signature, c.signature);
  }
  meeting->changed.notify_all();
  const bool together =
      meeting->changed.wait_until(lock, deadline, [&] { return meeting->come == c.members || is_spoilt(); });
  std::string missing;
  if (!together) {
    for (std::uint32_t m = 0; m < c.members; ++m)
      if (!meeting->here[m] && missing.size() < 60) missing += fmt::format(" {}", m);
    meeting->spoilt = Status::collective_stuck;
    meeting->why = fmt::format("of {} members these did not come in time:{}", c.members, missing);
    meeting->changed.notify_all();
  }
  if (++meeting->gone == meeting->come) {  // whoever comes later begins another meeting
    auto& turn = meetings_[key];
    std::erase(turn, meeting);
    if (turn.empty()) meetings_.erase(key);
  }
  if (is_spoilt()) refuse(meeting->spoilt, "{}: {}", c.signature, meeting->why);
  return meeting->brought;
}

void LocalRendezvous::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const auto& [key, turn] : meetings_)
    for (const auto& meeting : turn) {
      if (meeting->come == meeting->here.size() || meeting->spoilt != Status::success) continue;
      meeting->spoilt = Status::closed;
      meeting->why = "nrt_close was called";
      meeting->changed.notify_all();
    }
}

}  // namespace trellis::device::nrt
