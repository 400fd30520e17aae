// Shared memory within each host, the fabric between hosts, in one communicator. Liveness and boards of all ranks go
// over the fabric.
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ccl/transports/libfabric/transport.h"
#include "ccl/transports/libfabric/wire/provider.h"
#include "ccl/transports/registry.h"
#include "ccl/transports/who.h"
#include "ccl/transports/yielding.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using libfabric::FabricTransport;

constexpr std::uint32_t spins = 100;  // of a rank with a core to itself, before it yields
constexpr auto between_checks = 10ms;

// By rank, the first rank on its host.
std::vector<Rank> leaders_of(const libfabric::Roster& roster) {
  std::vector<Rank> leaders;
  for (Rank r = 0; r < roster.ranks(); ++r) {
    Rank leader = 0;
    while (roster.member(leader).home != roster.member(r).home) ++leader;
    leaders.push_back(leader);
  }
  return leaders;
}

// A store for the ranks of one host. It holds a single note: their first rank's, which comes over the fabric.
class HostStore : public Store {
 public:
  HostStore(FabricTransport& fabric, Rank leader) : fabric_(fabric), leader_(leader) {}
  void set(std::string_view, std::span<const std::byte> value) override { fabric_.tell_note(value); }
  Bytes get(std::string_view key, Deadline deadline) override {
    for (;;) {
      Bytes note = fabric_.note_of(leader_);
      if (!note.empty()) return note;
      if (Clock::now() > deadline) throw TimedOut(fmt::format("{}: {} tells nothing", key, who(fabric_, leader_)));
      usleep(200);
    }
  }
  std::int64_t add(std::string_view key, std::int64_t) override {
    throw std::logic_error("a host's store can't count " + std::string(key));
  }

 private:
  FabricTransport& fabric_;
  const Rank leader_;
};

// A receiver over shared memory. Ranks have other numbers there, so it corrects the sender that an error names.
class NearReceiver : public Receiver {
 public:
  NearReceiver(Receiver& receiver, Rank from, std::string name)
      : receiver_(receiver), from_(from), name_(std::move(name)) {}
  bool advance(Receiving& r) override try { return receiver_.advance(r); } catch (Misfit m) {
    m.sender = from_;
    throw m;
  } catch (const Withdrawn&) {
    throw Withdrawn{from_};
  } catch (const PeerLost& lost) {
    throw PeerLost(from_, lost.step, name_ + " died while it sent");
  }

 private:
  Receiver& receiver_;
  const Rank from_;
  const std::string name_;  // in messages
};

// Memory exposed to the ranks of this host, and then to those of others.
class ExposedTwice : public Exposed {
 public:
  ExposedTwice(std::unique_ptr<Exposed> here, std::unique_ptr<Exposed> to_others)
      : here_(std::move(here)), to_others_(std::move(to_others)) {}
  std::size_t readable_bytes() const override { return here_->readable_bytes(); }

 private:
  const std::unique_ptr<Exposed> here_, to_others_;
};

class Hybrid : public Transport {
 public:
  Hybrid(std::unique_ptr<FabricTransport> fabric, std::unique_ptr<Transport> host, std::vector<Rank> leaders)
      : fabric_(std::move(fabric)),
        host_(std::move(host)),
        leaders_(std::move(leaders)),
        local_(leaders_.size(), -1),
        spins_(fabric_->shares_cores() ? 0 : spins) {
    near_.resize(static_cast<std::size_t>(ranks() * lanes()));
    Rank next = 0;
    for (Rank r = 0; r < ranks(); ++r)
      if (leader(r) == leader(rank())) local_[static_cast<std::size_t>(r)] = next++;
  }

  const FabricTransport& fabric() const { return *fabric_; }
  Rank rank() const override { return fabric_->rank(); }
  Rank ranks() const override { return fabric_->ranks(); }
  std::string_view name() const override { return "hybrid"; }
  std::uint64_t identity() const override { return fabric_->identity(); }
  std::size_t memory_bytes() const override { return fabric_->memory_bytes() + (host_ ? host_->memory_bytes() : 0); }
  HostShape shape() const override { return shape_of(leaders_); }
  SharedCaches caches_here() const override { return host_ ? host_->caches_here() : fabric_->caches_here(); }

  int lanes() const override { return fabric_->lanes(); }
  std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) override {
    auto to_others = fabric_->expose(data, bytes);
    if (!host_) return to_others;
    return std::make_unique<ExposedTwice>(host_->expose(data, bytes), std::move(to_others));
  }
  std::size_t readable(const void* data, std::size_t bytes, std::size_t message) override {
    return host_ ? host_->readable(data, bytes, message) : fabric_->readable(data, bytes, message);
  }
  Sender& sender(Rank to, int lane) override {
    return near(to) ? host_->sender(local(to), lane) : fabric_->sender(to, lane);
  }
  Receiver& receiver(Rank from, int lane) override {
    if (!near(from)) return fabric_->receiver(from, lane);
    auto& end = near_[static_cast<std::size_t>(from * lanes() + lane)];
    if (!end) end = std::make_unique<NearReceiver>(host_->receiver(local(from), lane), from, who(*this, from));
    return *end;
  }
  bool wait(std::uint32_t idle, std::chrono::microseconds most) override;
  std::uint64_t arrivals() const override { return fabric_->arrivals(); }
  bool could_advance() const override { return fabric_->could_advance() || (host_ && host_->could_advance()); }
  std::optional<std::uint32_t> unread(Rank from, int lane) const override {
    return near(from) ? host_->unread(local(from), lane) : fabric_->unread(from, lane);
  }
  void withdraw() override {
    if (host_) host_->withdraw();
    fabric_->withdraw();
  }

  void show(const Activity& a) override { fabric_->show(a); }
  void rest() override { fabric_->rest(); }
  void show_elsewhere(Rank place, const WaitNews& news) override { fabric_->show_elsewhere(place, news); }
  Activity activity(Rank r) const override { return fabric_->activity(r); }
  void refresh(std::chrono::milliseconds most) override { fabric_->refresh(most); }
  bool answers(Rank r, std::chrono::milliseconds most) override { return fabric_->answers(r, most); }
  bool alive(Rank r) override { return fabric_->alive(r); }
  std::chrono::milliseconds silence(Rank r) override { return fabric_->silence(r); }
  bool cut_off() override { return fabric_->cut_off(); }
  bool left(Rank r) const override { return fabric_->left(r); }
  bool stopped(Rank r) const override { return fabric_->stopped(r); }
  void mark_lost(Rank r) override { fabric_->mark_lost(r); }
  Rank lost() const override { return fabric_->lost(); }
  Rank heard_by_others() const override { return fabric_->heard_by_others(); }
  void mark_aborted() override { fabric_->mark_aborted(); }
  Rank aborted_by() const override { return fabric_->aborted_by(); }
  bool aborted_here() const override { return fabric_->aborted_here(); }
  bool over() const override { return fabric_->over(); }
  std::int64_t process(Rank r) const override { return fabric_->process(r); }
  std::string host(Rank r) const override { return fabric_->host(r); }

  void post(std::span<const std::byte> bytes) override { fabric_->post(bytes); }
  std::vector<std::byte> posted(Rank r) const override { return fabric_->posted(r); }
  std::uint32_t posts(Rank r) const override { return fabric_->posts(r); }
  void wait_for_posts(std::uint64_t than, std::uint32_t idle) override { fabric_->wait_for_posts(than, idle); }

 private:
  Rank leader(Rank r) const { return leaders_[static_cast<std::size_t>(r)]; }
  Rank local(Rank r) const { return local_[static_cast<std::size_t>(r)]; }
  bool near(Rank r) const { return host_ && local(r) >= 0; }

  const std::unique_ptr<FabricTransport> fabric_;
  const std::unique_ptr<Transport> host_;            // null: this rank is alone on its host
  const std::vector<Rank> leaders_;                  // by rank, the first rank of its host
  std::vector<Rank> local_;                          // by rank, its number within this host; -1: it is elsewhere
  std::vector<std::unique_ptr<NearReceiver>> near_;  // by rank and lane; created at first use
  const std::uint32_t spins_;
  Yielding yielding_;
  Deadline last_check_ = {};
};

bool Hybrid::wait(std::uint32_t idle, std::chrono::microseconds most) {
  if (idle < spins_) return false;
  if (yielding_.goes_on(idle - spins_, Clock::now())) {
    sched_yield();
    return false;
  }
  fabric_->sleep(std::min(most, host_ == nullptr ? 1000us : 200us));
  const Deadline now = Clock::now();
  if (now - last_check_ < between_checks) return false;
  last_check_ = now;
  fabric_->look_around();
  return true;
}

// The rank that has this number among those of the leader's host.
Rank rank_on_host(const std::vector<Rank>& leaders, Rank leader, Rank number) {
  Rank r = leader;
  while (number > 0) number -= leaders[static_cast<std::size_t>(++r)] == leader ? 1 : 0;
  return r;
}

std::unique_ptr<Transport> open_hybrid(std::shared_ptr<Store> store, const Joining& j) {
  Joining of_fabric = j;
  if (const auto* const parent = dynamic_cast<const Hybrid*>(j.parent)) of_fabric.parent = &parent->fabric();
  auto fabric = libfabric::open_fabric(store, of_fabric);
  std::vector<Rank> leaders = leaders_of(fabric->presence().roster());
  const Rank leader = leaders[static_cast<std::size_t>(j.rank)];
  Joining of_host = j;
  of_host.ranks = static_cast<Rank>(std::ranges::count(leaders, leader));
  of_host.rank = static_cast<Rank>(std::count(leaders.begin(), leaders.begin() + j.rank, leader));
  of_host.waiting = {};
  of_host.parent = nullptr;
  std::unique_ptr<Transport> host;
  if (of_host.ranks > 1) try {
      host = transport_named("shared_memory").open(std::make_shared<HostStore>(*fabric, leader), of_host);
    } catch (const PeerLost& lost) {  // `lost.rank` counts the ranks of this host alone
      const Rank r = rank_on_host(leaders, leader, lost.rank);
      throw PeerLost(r, -1, fmt::format("{} was lost while the ranks of its host joined", who(*fabric, r)));
    }
  return std::make_unique<Hybrid>(std::move(fabric), std::move(host), std::move(leaders));
}

const RegisteredTransport registered(
    {.name = "hybrid",
     .summary = "processes of any hosts: shared memory within a host, libfabric between",
     .reach = TransportKind::Reach::hosts,
     .open = open_hybrid,
     .absent = libfabric::absence});

}  // namespace
}  // namespace trellis::ccl
