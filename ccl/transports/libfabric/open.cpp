// Opens the transport over libfabric. The store tells where each process listens for control; the rest goes over the
// fabric itself.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ccl/rendezvous/this_machine.h"
#include "ccl/transports/describe_rank.h"
#include "ccl/transports/libfabric/control/member_exchange.h"
#include "ccl/transports/libfabric/presence/gossip_neighbours.h"
#include "ccl/transports/libfabric/transport.h"
#include "ccl/transports/libfabric/wire/provider.h"
#include "ccl/transports/registry.h"
#include "device/capabilities.h"
#include "net/sha256.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto between_asks = 20ms;
constexpr auto for_an_answer = 500ms;  // how long an answer may take over a path that works

std::string name_of_this_host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

Member myself(const FabricSettings& s, const ControlLink& control) {
  const std::string named = s.host.empty() ? name_of_this_host() : s.host;
  return {.address = control.address(),
          .host = named,
          .home = this_host(s.host),
          .process = getpid(),
          .terms = control.terms()};
}

JoinOutcome outcome_of_giving_up(ControlLink& control, Presence& presence) {
  const Roster& roster = presence.roster();
  if (roster.rank() == 0) return presence.lock().joining().settle(JoinOutcome::dropped);
  presence.lock().joining().give_up();
  const auto silences = (control.paths().all - 1) * presence.lock().queue().longest_silence();
  for (const Deadline end = Clock::now() + for_an_answer + silences; Clock::now() < end; usleep(1000)) {
    if (presence.lock().joining().outcome() != JoinOutcome::open) break;
    presence.lock().heartbeats().ask(above(roster.rank(), roster.ranks()), Clock::now());
    control.progress();
  }
  return presence.lock().joining().outcome();
}

std::string named(const Presence& p, Rank r) { return who(r, p.roster().host(r)); }

std::string how_it_went(Presence& p, Rank r) {
  const auto parts = p.lock();
  const auto silence = parts.detector().silence(r, Clock::now());
  return silence.count() > 0 ? unanswered_for(silence) : parts.states().left(r) ? "has given up" : "died";
}

std::string what_was_dropped(const ControlLink& control) {
  const std::uint64_t count = control.dropped();
  if (count == 0) return "";
  return fmt::format("; {} control message{} dropped, which no rank of this job had sent so", count,
                     count == 1 ? " was" : "s were");
}

// Names the missing rank: the one that rank 0 reported, as only rank 0 hears of all; without a report, the first that
// this rank has not heard of.
PeerLost not_in_time(const ControlLink& control, Presence& p) {
  const std::vector<Rank> unseen = p.lock().joining().not_joined();
  const Rank missing = p.lock().joining().missing(), self = p.roster().rank();
  const bool told = missing >= 0;
  if (!told && unseen.empty())
    return {0, -1,
            fmt::format("{}, which gathers all ranks, has not said in time that all have joined{}", named(p, 0),
                        what_was_dropped(control))};
  const Rank r = told ? missing : unseen.front();
  return {r, -1,
          fmt::format("{}{} did not join in time{}{}", named(p, r), r == self ? ", this one," : "",
                      told && self != 0 ? ", as rank 0 found" : "", what_was_dropped(control))};
}

// Called while ranks are missing: true if this rank should stop waiting for them.
bool is_over(const JoinOptions& j, Presence& presence, std::span<const Rank> awaited) {
  if (j.waiting) {
    j.waiting(awaited);
    return false;
  }
  if (Clock::now() > j.deadline) return true;
  const Rank top = above(j.rank, j.ranks);
  if (!presence.lock().verdict().alive(top, Clock::now())) presence.lock().verdict().mark_lost(top, Clock::now());
  if (const Rank r = presence.verdict().lost(); r >= 0)
    throw PeerLost(r, -1,
                   fmt::format("{} {}, and the ranks were joining", named(presence, r), how_it_went(presence, r)));
  return false;
}

// Throws if this rank gives up joining. True: it wanted to give up, but all had joined at the last moment. False: it
// goes on waiting.
bool gives_up(ControlLink& control, Presence& presence, const JoinOptions& j, std::span<const Rank> awaited) {
  try {
    if (!is_over(j, presence, awaited)) return false;
  } catch (...) {
    if (outcome_of_giving_up(control, presence) == JoinOutcome::made) return true;
    throw;
  }
  if (outcome_of_giving_up(control, presence) == JoinOutcome::made) return true;
  throw not_in_time(control, presence);
}

// Returns on all ranks or on none: rank 0 decides that all have joined when they have come, or, when a rank gives up,
// that the joining is dropped.
void join_all(ControlLink& control, Presence& presence, const JoinOptions& j) {
  const Rank top = above(j.rank, j.ranks);
  presence.lock().joining().come();
  control.wake();
  Deadline asked = Clock::now();
  for (std::uint32_t turn = 0;; ++turn) {
    control.progress();
    std::vector<Rank> awaited = presence.lock().joining().not_joined();
    if (j.rank == 0 && awaited.empty()) presence.lock().joining().settle(JoinOutcome::made);
    const JoinOutcome outcome = presence.lock().joining().outcome();
    if (outcome == JoinOutcome::made) {
      control.wake();
      return;
    }
    if (outcome == JoinOutcome::dropped && j.waiting) throw JoinAborted("another rank has given up joining");
    if (outcome == JoinOutcome::dropped) throw not_in_time(control, presence);
    if (awaited.empty()) awaited.push_back(top);
    if (const Deadline now = Clock::now(); now - asked > between_asks) {
      asked = now;
      const auto p = presence.lock();
      for (const Rank r : awaited) p.heartbeats().ask(r, now);
      p.heartbeats().ask(top, now);
    }
    if (gives_up(control, presence, j, awaited)) return;
    if (turn < 50)
      sched_yield();
    else
      usleep(200);
  }
}

struct Family {
  std::shared_ptr<ControlLink> control;
  std::uint64_t identity = 0;
  std::vector<std::size_t> places;  // by rank; see Roster
  std::vector<Member> members;      // by rank
};

// Makes a communicator that is split from another: its members know each other, and the store carries only the new
// identity.
Family divided(const JoinOptions& j, const FabricTransport& parent) {
  Family f{.control = parent.control()};
  for (const Rank r : j.group) {
    f.places.push_back(parent.presence().roster().place(r));
    f.members.push_back(parent.presence().roster().member(r));
  }
  if (j.rank == 0) f.identity = net::random_number();
  return f;
}

Family first(Store& store, const JoinOptions& j) {
  Family f{.control = std::make_shared<ControlLink>(j.config.fabric)};
  CommunicatorNonce origin;
  if (j.rank == 0) origin = fresh_origin();
  f.members = exchange_members(store, j.rank, j.ranks, myself(j.config.fabric, *f.control), origin, j.deadline);
  f.identity = origin.identity;
  f.control->begin(f.members, MessageAuthenticator(store.secret(), origin));
  f.places.resize(f.members.size());
  std::iota(f.places.begin(), f.places.end(), std::size_t{0});
  return f;
}

bool has_memory_of_its_own(const device::Device* d) {
  return d != nullptr && d->capabilities().has(device::Capability::export_memory) && d->window().fd < 0;
}

}  // namespace

JoinedFabric join_fabric(std::shared_ptr<Store> store, const JoinOptions& j) {
  const auto* const parent = dynamic_cast<const FabricTransport*>(j.parent);
  Family f = parent != nullptr ? divided(j, *parent) : first(*store, j);
  if (parent != nullptr && j.rank != 0) {
    const Bytes told = store->get("fabric", j.deadline);
    if (told.size() != sizeof f.identity) throw std::invalid_argument("libfabric: the offer is of another kind");
    std::memcpy(&f.identity, told.data(), sizeof f.identity);
  }
  const auto presence =
      std::make_shared<Presence>(Roster(f.identity, j.rank, f.places, f.members), j.config.timeout, f.control->paths());
  auto data = std::make_unique<DataPath>(j.config.fabric, has_memory_of_its_own(j.device), presence, f.control,
                                         channel_lanes + 1);
  for (Rank r = 0; parent != nullptr && r < j.ranks; ++r) {
    const int path = parent->presence().lock().queue().path(j.group[static_cast<std::size_t>(r)]);
    presence->lock().queue().begin_on(r, path);
  }
  presence->lock().states().change([&](PublicState& s) { s.address = data->address(); });
  presence->lock().states().set_arrivals(data->traffic().arrivals());
  f.control->add(presence);
  if (parent != nullptr && j.rank == 0) store->set("fabric", std::as_bytes(std::span(&f.identity, 1)));
  try {
    join_all(*f.control, *presence, j);
  } catch (...) {
    f.control->flush(*presence, Clock::now() + 200ms);
    f.control->retire(presence);
    throw;
  }
  return {f.control, presence, std::move(data), j.config.timeout};
}

namespace {

std::unique_ptr<Transport> open_libfabric(std::shared_ptr<Store> store, const JoinOptions& j) {
  return std::make_unique<FabricTransport>(join_fabric(std::move(store), j));
}

const RegisteredTransport registered({.name = "libfabric",
                                      .summary = "processes of any hosts, through libfabric: EFA, TCP and others",
                                      .reach = TransportFactory::Reach::hosts,
                                      .open = open_libfabric,
                                      .absent = absence});

}  // namespace
}  // namespace trellis::ccl::libfabric
