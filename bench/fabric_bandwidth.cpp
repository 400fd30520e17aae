// What libfabric itself moves from one endpoint to another on this host, and what a send and a receive of ours move
// over the same provider: TRELLIS_PROVIDER. Two threads, so that one process measures both in turn, each on a core of
// its own: on one core they would take turns, which is slower or faster by chance.
#if __has_include(<rdma/fabric.h>)

#include <benchmark/benchmark.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/transports/libfabric/wire/open_wire.h"

namespace trellis {
namespace {

using namespace ccl::libfabric;

constexpr std::size_t piece_bytes = std::size_t{512} << 10;
constexpr std::size_t most_outstanding = 16;

// Keeps the calling thread on the process's nth core, as long as there are so many.
class OnCore {
 public:
  explicit OnCore(int nth) {
    sched_getaffinity(0, sizeof before_, &before_);
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_) && nth-- == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        sched_setaffinity(0, sizeof one, &one);
      }
  }
  ~OnCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OnCore(const OnCore&) = delete;
  OnCore& operator=(const OnCore&) = delete;

 private:
  cpu_set_t before_;
};

// One of the two endpoints of bare(), which uses libfabric without our transport.
struct Side {
  explicit Side(std::size_t bytes)
      : wire(open_wire(ccl::fabric_from_environment(), 0, 0, 0)),
        memory(bytes),
        region(wire->region({.data = memory.data(), .bytes = bytes}, true)),
        own(wire->region({.data = memory.data(), .bytes = bytes}, false)) {}
  std::unique_ptr<Wire> wire;
  std::vector<std::byte> memory;
  std::unique_ptr<MemoryRegion> region, own;
};

void bare(benchmark::State& state) {
  if (!library_absence().empty()) return state.SkipWithError(library_absence().c_str());
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Side from(bytes), to(bytes);
  const fi_addr_t peer = from.wire->know(to.wire->address(), 1);
  to.wire->know(from.wire->address(), 0);
  std::atomic<std::uint64_t> landed = 0;
  std::atomic<bool> over = false;
  std::thread other([&] {
    const OnCore second(1);
    std::array<WireEvent, 16> events;
    while (!over) {
      const std::size_t count = to.wire->poll(events);
      for (std::size_t i = 0; i < count; ++i) landed += events[i].what == WireEvent::What::immediate;
      if (count == 0) sched_yield();
    }
  });
  const OnCore first(0);
  std::array<WireOperation, most_outstanding> operations;
  std::vector<WireOperation*> idle;
  for (WireOperation& op : operations) idle.push_back(&op);
  std::uint64_t sent = 0;
  std::array<WireEvent, 16> events;
  for (auto _ : state) {
    for (std::size_t at = 0; at < bytes || idle.size() != operations.size() || landed != sent;) {
      const std::size_t piece = std::min(piece_bytes, bytes - at);
      if (piece != 0 && !idle.empty() &&
          from.wire->write({peer, to.region->address() + at, to.region->key()},
                           {from.memory.data() + at, piece, from.own->descriptor()}, 0, *idle.back())) {
        idle.pop_back();
        at += piece;
        ++sent;
        continue;
      }
      const std::size_t count = from.wire->poll(events);
      for (std::size_t i = 0; i < count; ++i)
        if (events[i].operation != nullptr) idle.push_back(events[i].operation);
      if (count == 0) sched_yield();  // the other side may need the core
    }
  }
  over = true;
  other.join();
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void ours(benchmark::State& state) {
  if (!library_absence().empty()) return state.SkipWithError(library_absence().c_str());
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto store = ccl::memory_store();
  const auto join = [&](ccl::Rank rank) {
    ccl::Config config = ccl::config_from_environment();
    config.transport = "libfabric";
    return ccl::Communicator::create(store, rank, 2, config);
  };
  std::thread other([&] {
    const auto comm = join(1);
    const OnCore second(1);
    std::vector<std::byte> memory(bytes);
    do {
      comm->recv(memory.data(), bytes, kernels::DType::u8, 0);
      comm->send(memory.data(), 1, kernels::DType::u8, 0);
    } while (memory[0] == std::byte{0});
  });
  const auto comm = join(0);
  const OnCore first(0);
  std::vector<std::byte> memory(bytes);
  std::byte answer{};
  const auto exchange = [&] {
    comm->send(memory.data(), bytes, kernels::DType::u8, 1);
    comm->recv(&answer, 1, kernels::DType::u8, 1);
  };
  for (auto _ : state) exchange();
  memory[0] = std::byte{1};
  exchange();
  other.join();
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// The time to register memory, which each large message would pay if registrations were not kept.
void registration(benchmark::State& state) {
  if (!library_absence().empty()) return state.SkipWithError(library_absence().c_str());
  const auto wire = open_wire(ccl::fabric_from_environment(), 0, 0, 0);
  std::vector<std::byte> memory(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) wire->region({.data = memory.data(), .bytes = memory.size()}, true);
}

BENCHMARK(registration)->Arg(64 << 10)->Arg(64 << 20);
BENCHMARK(bare)->RangeMultiplier(8)->Range(8 << 10, 64 << 20)->UseRealTime();
BENCHMARK(ours)->RangeMultiplier(8)->Range(8, 64 << 20)->UseRealTime();

}  // namespace
}  // namespace trellis

#endif
