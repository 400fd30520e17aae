// Shared memory within each host, the fabric between hosts, in one communicator. Liveness and boards of all ranks go
// over the fabric.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ccl/transports/describe_rank.h"
#include "ccl/transports/libfabric/transport.h"
#include "ccl/transports/libfabric/wire/provider.h"
#include "ccl/transports/registry.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using libfabric::FabricTransport;

constexpr std::uint32_t spins = 100;  // polls of a rank with a core to itself before it yields the core

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

// A store through which the ranks of one host open their shared memory. It holds a single value, whatever the key:
// set() publishes this rank's over the fabric, and get() waits for that of the host's lowest rank.
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
  bool advance(Receiving& r) override try { return receiver_.advance(r); } catch (MessageMismatch m) {
    m.sender = from_;
    throw m;
  } catch (const MessageWithdrawn&) {
    throw MessageWithdrawn{from_};
  } catch (const PeerLost& lost) {
    throw PeerLost(from_, lost.step, name_ + " died while it sent");
  }

 private:
  Receiver& receiver_;
  const Rank from_;
  const std::string name_;  // of the sender, for error messages
};

// Memory exposed through both transports: to the ranks of this host in shared memory, to all others over the fabric.
class ExposedTwice : public Exposed {
 public:
  ExposedTwice(std::unique_ptr<Exposed> here, std::unique_ptr<Exposed> to_others)
      : here_(std::move(here)), to_others_(std::move(to_others)) {}
  std::size_t readable_bytes() const override { return here_->readable_bytes(); }

 private:
  const std::unique_ptr<Exposed> here_, to_others_;
};

class Hybrid : public FabricTransport {
 public:
  Hybrid(libfabric::JoinedFabric parts, const JoinOptions& j)
      : FabricTransport(std::move(parts), spins),
        leaders_(leaders_of(roster())),
        local_(leaders_.size(), -1),
        near_(static_cast<std::size_t>(ranks() * lanes())) {
    JoinOptions of_host = j;
    of_host.ranks = 0;
    for (Rank r = 0; r < ranks(); ++r)
      if (leader(r) == leader(rank())) local_[static_cast<std::size_t>(r)] = of_host.ranks++;
    of_host.rank = local(rank());
    of_host.waiting = {};
    of_host.parent = nullptr;
    if (of_host.ranks > 1) open_host(of_host);
  }

  std::string_view name() const override { return "hybrid"; }
  std::size_t memory_bytes() const override {
    return FabricTransport::memory_bytes() + (host_ ? host_->memory_bytes() : 0);
  }
  RanksByHost shape() const override { return shape_of(leaders_); }
  SharedCaches caches_here() const override { return host_ ? host_->caches_here() : FabricTransport::caches_here(); }

  std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) override {
    auto to_others = FabricTransport::expose(data, bytes);
    if (!host_) return to_others;
    return std::make_unique<ExposedTwice>(host_->expose(data, bytes), std::move(to_others));
  }
  std::size_t readable(const void* data, std::size_t bytes, std::size_t message) override {
    return host_ ? host_->readable(data, bytes, message) : FabricTransport::readable(data, bytes, message);
  }
  Sender& sender(Rank to, int lane) override {
    return near(to) ? host_->sender(local(to), lane) : FabricTransport::sender(to, lane);
  }
  Receiver& receiver(Rank from, int lane) override {
    if (!near(from)) return FabricTransport::receiver(from, lane);
    auto& end = near_[static_cast<std::size_t>(from * lanes() + lane)];
    if (!end) end = std::make_unique<NearReceiver>(host_->receiver(local(from), lane), from, who(*this, from));
    return *end;
  }
  bool could_advance() const override { return FabricTransport::could_advance() || (host_ && host_->could_advance()); }
  std::optional<std::uint32_t> unread(Rank from, int lane) const override {
    return near(from) ? host_->unread(local(from), lane) : FabricTransport::unread(from, lane);
  }
  void withdraw() override {
    if (host_) host_->withdraw();
    FabricTransport::withdraw();
  }

 private:
  void open_host(const JoinOptions& j) try {
    host_ = transport_named("shared_memory").open(std::make_shared<HostStore>(*this, leader(rank())), j);
    longest_sleep_ = 200us;         // short, as a message through shared memory does not end the sleep
  } catch (const PeerLost& lost) {  // `lost.rank` is a number among the ranks of this host
    const auto r = static_cast<Rank>(std::ranges::find(local_, lost.rank) - local_.begin());
    throw PeerLost(r, -1, fmt::format("{} was lost while the ranks of its host joined", who(*this, r)));
  }
  Rank leader(Rank r) const { return leaders_[static_cast<std::size_t>(r)]; }
  Rank local(Rank r) const { return local_[static_cast<std::size_t>(r)]; }
  bool near(Rank r) const { return host_ && local(r) >= 0; }

  const std::vector<Rank> leaders_;                  // by rank, the first rank of its host
  std::vector<Rank> local_;                          // by rank, its number within this host; -1: it is elsewhere
  std::unique_ptr<Transport> host_;                  // null: this rank is alone on its host
  std::vector<std::unique_ptr<NearReceiver>> near_;  // by rank and lane; created at first use
};

std::unique_ptr<Transport> open_hybrid(std::shared_ptr<Store> store, const JoinOptions& j) {
  return std::make_unique<Hybrid>(libfabric::join_fabric(std::move(store), j), j);
}

const RegisteredTransport registered(
    {.name = "hybrid",
     .summary = "processes of any hosts: shared memory within a host, libfabric between",
     .reach = TransportFactory::Reach::hosts,
     .open = open_hybrid,
     .absent = libfabric::absence});

}  // namespace
}  // namespace trellis::ccl
