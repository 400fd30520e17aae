// Presences without a fabric, whose messages tests carry.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <thread>

#include "ccl/transports/libfabric/presence/presence.h"

namespace trellis::ccl::libfabric {

// A roster with one rank on each host: "h0", "h1", ...
inline Roster roster_of(Rank rank, Rank ranks) {
  std::vector<std::size_t> places(static_cast<std::size_t>(ranks));
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::vector<Member> members;
  for (Rank r = 0; r < ranks; ++r)
    members.push_back({.host = "h" + std::to_string(r), .home = "b" + std::to_string(r)});
  return {7, rank, std::move(places), std::move(members)};
}

inline Presence presence_of(Rank rank, Rank ranks, std::chrono::milliseconds timeout = std::chrono::seconds(10),
                            ControlPaths paths = {}) {
  return {roster_of(rank, ranks), timeout, paths};
}

// The parts of a Presence, for tests that set the time.
struct Parts {
  Parts(Rank rank, Rank ranks, std::chrono::milliseconds timeout, ControlPaths paths = {})
      : roster(roster_of(rank, ranks)),
        queue(rank, ranks, paths, timeout),
        states(7, rank, ranks, queue),
        detector(roster, states, timeout, paths),
        heartbeats(roster, states, detector, queue),
        verdict(roster, states, detector, heartbeats, queue),
        joining(rank, ranks, states, queue) {}
  // Takes a state as if rank `from` had published it.
  void take(Rank from, const std::function<void(PublicStateHeader&)>& f) {
    PublicState s = states.of(from);
    s.head.from = from;
    s.head.to = roster.rank();
    ++s.head.version;
    f(s.head);
    states.take(s);
  }

  const Roster roster;
  ControlQueue queue;
  PublishedStates states;
  FailureDetector detector;
  Heartbeats heartbeats;
  FailureAgreement verdict;
  JoinBarrier joining;
};

inline PublicState message(Presence& from, Rank to, int path = 0) {
  std::vector<std::byte> bytes;
  bytes.resize(from.write_for(to, path, 4096, bytes));
  PublicState state;
  EXPECT_TRUE(read_public(bytes, state));
  return state;
}

inline void tell(Presence& from, Presence& to, int path = 0) {
  EXPECT_TRUE(to.hear(message(from, to.roster().rank(), path), path));
}

// Questions to a Presence, with the current time.
inline void ask(Presence& p, Rank r) { p.lock().heartbeats().ask(r, Clock::now()); }
inline std::uint32_t asked(Presence& p, Rank r) { return p.lock().heartbeats().asked(r); }
inline bool answered(Presence& p, Rank r, std::uint32_t ask) { return p.lock().heartbeats().answered(r, ask); }
inline bool alive(Presence& p, Rank r) { return p.lock().verdict().alive(r, Clock::now()); }
inline std::chrono::milliseconds silence(Presence& p, Rank r) { return p.lock().detector().silence(r, Clock::now()); }
inline bool cut_off(Presence& p) { return p.lock().detector().cut_off(Clock::now()); }
inline void mark_lost(Presence& p, Rank r) { p.lock().verdict().mark_lost(r, Clock::now()); }
inline void refuse(Presence& p, Rank r) { p.lock().detector().refused(r, Clock::now()); }

// Takes the messages that are due and reports them as sent, as ControlLink does, but none arrives.
inline void send_in_vain(Presence& p) {
  for (const Rank r : p.take_owed()) {
    const int path = p.lock().queue().path(r);
    p.sending(r, path);
    p.sent(r, path, 0);
  }
}

bool holds_in_time(auto&& holds) {
  for (const Deadline end = Clock::now() + std::chrono::seconds(20); Clock::now() < end;
       std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (holds()) return true;
  return false;
}

}  // namespace trellis::ccl::libfabric
