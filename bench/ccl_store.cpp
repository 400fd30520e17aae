// How long ranks take to find each other over the TCP store: each connects, sets a key, and waits for the key of every
// other rank.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ccl/rendezvous/tcp/server.h"
#include "ccl/store.h"

namespace trellis {
namespace {

using namespace std::chrono_literals;
using namespace ccl;

// The time in which two ranks find each other that are connected to the store already: each sets a key, and waits for
// the other's.
void two_meet(benchmark::State& state) {
  TcpStoreServer server({.address = "127.0.0.1", .secret = "secret"});
  const auto join = [&] { return tcp_store("127.0.0.1", server.port(), "secret", Clock::now() + 60s); };
  const auto a = join(), b = join();
  int round = 0;
  for (auto _ : state) {
    const std::string note = std::to_string(round++);
    std::thread other([&] {
      b->set("b" + note, {});
      b->get("a" + note, Clock::now() + 60s);
    });
    a->set("a" + note, {});
    a->get("b" + note, Clock::now() + 60s);
    other.join();
  }
}

void all_meet(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  TcpStoreServer server({.address = "127.0.0.1", .secret = "secret"});
  int round = 0;
  for (auto _ : state) {
    const std::string prefix = std::to_string(round++) + "/";
    std::vector<std::thread> clients;
    for (int r = 0; r < ranks; ++r)
      clients.emplace_back([&, r] {
        const auto store = tcp_store("127.0.0.1", server.port(), "secret", Clock::now() + 60s);
        store->set(prefix + std::to_string(r), {});
        for (int o = 0; o < ranks; ++o) store->get(prefix + std::to_string(o), Clock::now() + 60s);
      });
    for (std::thread& t : clients) t.join();
  }
}

BENCHMARK(two_meet)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(all_meet)->Arg(64)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trellis
