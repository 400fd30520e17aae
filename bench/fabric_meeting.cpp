// How long the ranks of a large job take to learn of each other through one store, as the transport over libfabric does
// it: as many clients as the job has ranks, in threads of this process, each with a connection of its own.
#if __has_include(<rdma/fabric.h>)

#include <benchmark/benchmark.h>

#include <atomic>
#include <thread>
#include <vector>

#include "ccl/descriptor_limit.h"
#include "ccl/rendezvous/tcp/server.h"
#include "ccl/transports/libfabric/control/member_exchange.h"
#include "net/descriptor.h"

namespace trellis {
namespace {

using namespace std::chrono_literals;
using namespace ccl;
using namespace ccl::libfabric;

Member member(Rank r) {
  Member m{.host = "host-" + std::to_string(r / 8), .home = "of its kernel", .process = 1000 + r};
  m.address.assign(32, static_cast<std::byte>(r));  // as long as EFA's
  return m;
}

void meeting(benchmark::State& state) {
  const auto ranks = static_cast<Rank>(state.range(0));
  raise_descriptor_limit();
  if (net::descriptor_limit() < 2 * static_cast<std::size_t>(ranks) + 100)
    return state.SkipWithError("too few descriptors");
  for (auto _ : state) {
    TcpStoreServer server({.address = "127.0.0.1", .secret = "secret"});
    std::atomic<int> wrong = 0;
    std::vector<std::thread> clients;
    for (Rank r = 0; r < ranks; ++r)
      clients.emplace_back([&, r] {
        try {
          const auto store = tcp_store("127.0.0.1", server.port(), "secret", Clock::now() + 60s);
          CommunicatorNonce origin{.identity = r == 0 ? 77U : 0U};
          const auto all = exchange_members(*store, r, ranks, member(r), origin, Clock::now() + 60s);
          wrong += origin.identity != 77 || all.back().process != 999 + ranks;
        } catch (const std::exception&) {
          ++wrong;
        }
      });
    for (std::thread& t : clients) t.join();
    if (wrong != 0) return state.SkipWithError("not all have met");
  }
}

BENCHMARK(meeting)->Arg(64)->Arg(1024)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(meeting)->Name("meeting-memory")->Arg(4096)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trellis

#endif
