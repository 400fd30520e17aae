// The transport over libfabric on each provider that is here, and over a hostile fabric.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <set>
#include <thread>

#include "ccl/group.h"
#include "ccl/store.h"
#include "ccl/transports/libfabric/wire/endpoint_wire.h"
#include "ccl/transports/libfabric/wire/provider.h"
#include "tests/ccl/ranks/cases.h"
#include "tests/ccl/ranks/run.h"
#include "tests/faults/injected_faults.h"

namespace trellis::ccl {

// Prints the settings in the names of tests.
static void PrintTo(const FabricSettings& s, std::ostream* out) {
  *out << fmt::format("provider '{}', {} rails{}{}", s.provider, s.rails, s.tagged ? ", tagged" : "",
                      s.checksum ? ", checksums" : "");
}

namespace {

using namespace std::chrono_literals;
using kernels::DType;
using libfabric::InjectedFaults;

void floats(Call& call, std::size_t turn) {
  constexpr kernels::Reduction ops[] = {kernels::Reduction::sum, kernels::Reduction::avg, kernels::Reduction::max};
  call.op = {ops[turn % 3]};
}

bool offered(const FabricSettings& s) {
  try {
    return libfabric::library_absence().empty() && libfabric::chosen(s) != nullptr;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// What is wrong over this fabric: with small messages and messages in a few pieces, in place and not, by two
// algorithms.
std::string wrong_over(const FabricSettings& fabric, Rank ranks) {
  constexpr std::array algorithms = {"direct", "ring"};
  const std::size_t counts[] = {13, 70'001};
  std::map<std::string, std::vector<Case>> by_algorithm;
  for (const Case& c : cases_for(ranks, counts, floats))
    if (std::ranges::find(algorithms, c.algorithm) != algorithms.end()) by_algorithm[c.algorithm].push_back(c);
  std::string wrong;
  for (const auto& [algorithm, cases] : by_algorithm)
    wrong += run_ranks("libfabric", ranks,
                       [&](Communicator& comm) {
                         for (std::size_t i = 0; i < cases.size(); ++i) run_case(comm, cases[i], i);
                       },
                       {.timeout = 60s, .algorithm = algorithm, .fabric = fabric});
  return wrong;
}

// Every algorithm, including `hierarchical` on hosts of two ranks each, with shorter messages.
TEST(HostileFabric, ChangesNoBitAlongAnyAlgorithm) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  const std::size_t counts[] = {13, 9'001};
  const InjectedFaults faults("seed=6,reorder=20,refuse=10,credits=8,fail=5");
  EXPECT_EQ(run_cases("libfabric", 4, counts, floats, {.timeout = 60s, .fabric = {.rails = 2}}), "");
}

TEST(Fabric, RanksThatCarryDataDifferentlyRefuseEachOther) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  std::shared_ptr<Store> store;
  const auto said = [&](Rank rank, const FabricSettings& fabric) -> std::string {
    try {
      Communicator::create(store, rank, 2, {.timeout = 20s, .transport = "libfabric", .fabric = fabric});
      return "joined";
    } catch (const Mismatch& error) {
      return error.rank == 1 - rank ? error.what() : "another rank differs";
    }
  };
  const auto both = [&](const FabricSettings& mine, const FabricSettings& theirs) {
    store = memory_store();
    std::string other;
    std::thread first([&] { other = said(1, theirs); });
    const std::string own = said(0, mine);
    first.join();
    EXPECT_EQ(own, other);
    return own;
  };
  const std::string rails = both({.rails = 2}, {.tagged = true});
  EXPECT_TRUE(rails.find("rank 1") != rails.npos && rails.find("tagged messages, 1 rail") != rails.npos &&
              rails.find("2 rails") != rails.npos)
      << rails;
  const std::string checks = both({.checksum = true}, {});
  EXPECT_TRUE(checks.find("with checksums") != checks.npos && checks.find("without checksums") != checks.npos)
      << checks;
}

class Providers : public testing::TestWithParam<FabricSettings> {};

TEST_P(Providers, CarryEveryKindOfMessage) {
  if (!offered(GetParam())) GTEST_SKIP() << "this libfabric has no provider " << GetParam().provider;
  EXPECT_EQ(wrong_over(GetParam(), 3), "");
}

INSTANTIATE_TEST_SUITE_P(
    Fabric, Providers,
    testing::Values(FabricSettings{.provider = "tcp;ofi_rxm"}, FabricSettings{.provider = "net"},
                    FabricSettings{.provider = "shm"}, FabricSettings{.provider = "sm2"},
                    FabricSettings{.provider = "udp;ofi_rxd"}, FabricSettings{.tagged = true},
                    FabricSettings{.rails = 3}, FabricSettings{.provider = "tcp;ofi_rxm", .checksum = true},
                    FabricSettings{.provider = "shm", .checksum = true}, FabricSettings{.checksum = true},
                    FabricSettings{.tagged = true, .checksum = true}, FabricSettings{.checksum = true, .rails = 3}));

class HostileFabric : public testing::TestWithParam<const char*> {};

TEST_P(HostileFabric, ChangesNoBit) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  const InjectedFaults faults(GetParam());
  EXPECT_EQ(wrong_over({.rails = 2}, 3), "");
}

INSTANTIATE_TEST_SUITE_P(Fabric, HostileFabric,
                         testing::Values("seed=1,reorder=40,hold=30", "seed=2,refuse=50,credits=2", "fail=100,only=1",
                                         "stick=20,only=1", "fail=100,only=0", "stick=20,only=0", "stick=100,only=0",
                                         "seed=4,former=50", "places=2", "outstanding=4", "outstanding=2,only=1",
                                         "seed=3,stall=5,reorder=20,refuse=10,credits=8,fail=5"));

// Rank 0 receives from all others at once. Each of them but the last may only send when the next one has sent, so the
// message that gets room first arrives last.
TEST(HostileFabric, MessagesForWhichThereIsNoPlaceWait) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  constexpr std::size_t large = 300'000;
  const auto gather = [](Communicator& c) {
    std::vector<std::vector<std::int32_t>> got(static_cast<std::size_t>(c.ranks()), std::vector<std::int32_t>(large));
    const std::vector<std::int32_t> own(large, c.rank());
    std::int32_t turn = 0;
    for (int round = 0; round < 3; ++round) {
      if (c.rank() == 0) {
        Group all;
        for (Rank r = 1; r < c.ranks(); ++r) c.recv(got[static_cast<std::size_t>(r)].data(), large, DType::i32, r);
        all.end();
        for (Rank r = 1; r < c.ranks(); ++r)
          if (std::ranges::count(got[static_cast<std::size_t>(r)], r) != large)
            throw std::runtime_error(fmt::format("from rank {}", r));
        continue;
      }
      if (c.rank() + 1 < c.ranks()) c.recv(&turn, 1, DType::i32, c.rank() + 1);
      c.send(own.data(), large, DType::i32, 0);
      if (c.rank() > 1) c.send(&turn, 1, DType::i32, c.rank() - 1);
    }
  };
  for (const bool tagged : {false, true})
    for (const int places : {1, 2, 3}) {
      const InjectedFaults faults(fmt::format("places={}", places));
      EXPECT_EQ(run_ranks("libfabric", 4, gather, {.timeout = 60s, .fabric = {.tagged = tagged}}), "")
          << places << (tagged ? ", tagged" : "");
    }
}

// A packet that fails many times in a row was once given up, and its receiver waited for it until the deadline.
TEST(HostileFabric, AMessageThatFailsTwentyTimesInARowArrives) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  const auto add = [](Communicator& c) {
    for (int i = 0; i < 20; ++i) {
      std::vector<std::int32_t> data(4000, 1);
      c.all_reduce(data.data(), data.data(), data.size(), DType::i32);
      if (data.front() != 2 || data.back() != 2) throw std::runtime_error("the sum");
    }
  };
  const InjectedFaults faults("seed=5,fail=90,only=0");
  for (const bool tagged : {false, true})
    EXPECT_EQ(run_ranks("libfabric", 2, add, {.timeout = 60s, .fabric = {.tagged = tagged}}), "");
}

// Memory at one address is freed, and allocated, mapped or exposed anew: a registration of its former pages must not be
// used again.
TEST(Fabric, MemoryThatIsFreedAndMappedAgainGivesRightData) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  constexpr std::size_t count = 100'000, bytes = count * sizeof(float);
  const auto sums = [](Communicator& c, void* memory, int turn) {
    auto* const data = static_cast<float*>(memory);
    std::fill_n(data, count, static_cast<float>(c.rank() + turn));
    c.all_reduce(data, data, count, DType::f32);
    const float sum = static_cast<float>(3 + 3 * turn);
    if (std::count(data, data + count, sum) != count) throw std::runtime_error(fmt::format("turn {}", turn));
  };
  const auto maps = [](void* at) {  // at the same address again, unless it is in use by now
    void* const got = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) throw std::runtime_error("mmap");
    return got;
  };
  for (const char* const transport : {"libfabric", "hybrid"})
    for (const int kept : {0, 1, 256})
      EXPECT_EQ(run_ranks(transport, 3,
                          [&](Communicator& c) {
                            void* at = nullptr;
                            for (int turn = 0; turn < 4; ++turn) {
                              void* const own = c.device().allocate(bytes);
                              sums(c, own, turn);
                              sums(c, own, turn + 1);
                              c.device().release(own);
                              at = maps(at);
                              sums(c, at, turn);
                              {
                                const auto exposed = c.expose(at, bytes);
                                sums(c, at, turn + 2);
                                sums(c, at, turn + 1);
                              }
                              sums(c, at, turn);
                              munmap(at, bytes);
                            }
                          },
                          {.timeout = 20s, .algorithm = "ring", .fabric = {.rails = 2, .registrations = kept}}),
                "");
}

// Rank 0 sends as many small messages as a lane takes without waiting for the others; large messages follow.
void exchange_small_and_large(Communicator& c) {
  constexpr std::size_t small = 700, medium = 25'000, large = 120'000;
  constexpr int rounds = 14;
  std::vector<std::int32_t> data(small), more(large);
  for (int i = 0; i < rounds; ++i)
    for (Rank r = 1; r < c.ranks(); ++r) {
      std::ranges::fill(data, i);
      if (c.rank() == 0) c.send(data.data(), small, DType::i32, r);
    }
  for (int i = 0; i < rounds && c.rank() != 0; ++i) {
    c.recv(data.data(), small, DType::i32, 0);
    if (std::ranges::count(data, i) != small) throw std::runtime_error(fmt::format("message {}", i));
  }
  for (int i = 0; i < rounds; ++i) {
    more.assign(medium, c.rank() == 0 ? i : -1);      // an earlier message may still have to be resent
    std::ranges::fill(data, c.rank() == 0 ? i : -1);  // sent while the message before it may still have to be resent
    if (c.rank() == 0) {
      c.send(more.data(), more.size(), DType::i32, 1);
      c.send(data.data(), small, DType::i32, 1);
    } else if (c.rank() == 1) {
      c.recv(more.data(), more.size(), DType::i32, 0);
      c.recv(data.data(), small, DType::i32, 0);
      if (std::ranges::count(more, i) != medium) throw std::runtime_error(fmt::format("medium {}", i));
      if (std::ranges::count(data, i) != small) throw std::runtime_error(fmt::format("small after medium {}", i));
    }
  }
  for (int i = 0; i < 8; ++i) {
    const std::size_t count = i % 2 == 0 ? large : medium;
    more.assign(count, c.rank() + i);
    c.all_reduce(more.data(), more.data(), count, DType::i32);
    if (std::ranges::count(more, 3 + 3 * i) != static_cast<std::ptrdiff_t>(count))
      throw std::runtime_error(fmt::format("sum {}", i));
  }
  if (c.rank() == 2) c.send(data.data(), small, DType::i32, 1);
  if (c.rank() == 1) c.recv(data.data(), small, DType::i32, 2);
}

// The first rail of rank 0, or of all, stops after any message, and may report messages as sent that it does not carry.
// The communicator is closed while some have yet to arrive.
TEST(HostileFabric, NothingIsLostWhereverTheFirstRailStops) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  for (int way = 0; way < 4; ++way)
    for (const int after : {1, 5, 20, 33, 60}) {
      const InjectedFaults faults(fmt::format("stick={},only=0,early={}", after, way % 2));
      EXPECT_EQ(run_ranks("libfabric", 3, exchange_small_and_large,
                          {.timeout = 10s,
                           .algorithm = "all_reduce=ring",
                           .fabric = {.tagged = way / 2 != 0, .rails = after % 2 == 0 ? 2 : 3}}),
                "")
          << after << (way / 2 != 0 ? ", tagged" : "") << (way % 2 != 0 ? ", early" : "");
    }
}

// The only rail of rank 0, or of all, stops. Another is opened in its place when nothing has arrived for a part of the
// timeout; the cases wait for that at the same time.
TEST(HostileFabric, NothingIsLostWhereTheOnlyRailStops) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  constexpr std::array<int, 6> stops = {1, 4, 7, 20, 33, 60};
  for (const char* transport : {"libfabric", "hybrid"})
    for (int way = 0; way < 4; ++way) {
      const std::vector<std::string> said = at_once(stops.size(), [&](std::size_t at) {
        const InjectedFaults faults(fmt::format("stick={},only=0,early={}", stops[at], way % 2));
        return run_ranks(transport, 3, exchange_small_and_large,
                         {.timeout = 40s, .algorithm = "all_reduce=ring", .fabric = {.tagged = way / 2 != 0}});
      });
      for (std::size_t at = 0; at < stops.size(); ++at)
        EXPECT_EQ(said[at], "") << transport << ", " << stops[at] << (way / 2 != 0 ? ", tagged" : "")
                                << (way % 2 != 0 ? ", early" : "");
    }
}

// The rail stops more often than rails may be open at a time: each that is opened stops in its turn.
TEST(HostileFabric, TheOnlyRailMayStopAnyNumberOfTimes) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  constexpr std::size_t ways = 4;
  const std::vector<std::string> said = at_once(ways, [&](std::size_t way) {
    const InjectedFaults faults(fmt::format("stick=25,early={},control=3", way % 2));
    return run_ranks("libfabric", 3, exchange_small_and_large,
                     {.timeout = 40s, .algorithm = "all_reduce=ring", .fabric = {.tagged = way / 2 != 0}});
  });
  for (std::size_t way = 0; way < ways; ++way) EXPECT_EQ(said[way], "") << way;
}

// An interface stops while the ranks join, or later, and with it a rail and the control messages over it.
TEST(HostileFabric, AnInterfaceThatStopsIsNoLostPeer) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  for (const char* transport : {"libfabric", "hybrid"})
    for (const int rail : {0, 1})
      for (const char* how : {"stick=1", "stick=4", "stick=30,early=1", "fail=100"}) {
        const InjectedFaults faults(fmt::format("{},only={},control=1", how, rail));
        EXPECT_EQ(run_ranks(transport, 3,
                            [](Communicator& c) {
                              exchange_small_and_large(c);
                              const auto half = c.split(c.rank() / 2, c.rank());
                              std::int32_t one = 1;
                              half->all_reduce(&one, &one, 1, DType::i32);
                              if (one != half->ranks()) throw std::runtime_error("the sum of a half");
                            },
                            {.timeout = 60s, .algorithm = "all_reduce=ring", .fabric = {.rails = 2}}),
                  "")
            << transport << ", rail " << rail << ", " << how;
      }
}

// A rank on another host: only messages that fail, or are not answered, tell that it has died.
TEST(Fabric, AKilledRankOfAnotherHostIsNamedAndTheOthersGoOn) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  const std::string said =
      run_ranks("hybrid", 4,
                [](Communicator& c) {
                  std::vector<float> data(50'000, 1.0F);
                  try {
                    for (int i = 0; i < 1'000'000; ++i) {
                      if (c.rank() == 2 && i == 5) kill(getpid(), SIGKILL);
                      c.all_reduce(data.data(), data.data(), data.size(), DType::f32);
                    }
                  } catch (const PeerLost& lost) {
                    if (lost.rank != 2) throw;
                    if (c.rank() == 0 && std::string(lost.what()).find("rank 2") == std::string::npos) throw;
                    const auto rest = c.shrink(std::array{2});
                    std::int32_t one = 1;
                    rest->all_reduce(&one, &one, 1, DType::i32);
                    if (one != 3) throw std::runtime_error("the survivors' sum");
                    return;
                  }
                  throw std::runtime_error("nothing failed");
                },
                {.timeout = long_deadline});
  EXPECT_EQ(said, "rank 2: signal 9\n");
}

TEST(Fabric, AnUnknownProviderIsRefusedWithTheKnownOnes) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  const std::string said = run_ranks("libfabric", 2, [](Communicator&) {}, {.fabric = {.provider = "pigeon"}});
  EXPECT_NE(said.find("has no endpoint for provider 'pigeon'"), std::string::npos) << said;
}

// This test is here because libfabric 1.17 leaks memory with each endpoint, which a sanitizer's run would report.
TEST(Fabric, AProviderHereRefusesDeviceMemory) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  const auto wire = libfabric::open_endpoint(libfabric::chosen({}));
  std::vector<std::byte> memory(4096);
  EXPECT_NE(wire->region({.data = memory.data(), .bytes = 10}, true), nullptr);
  try {
    wire->region({.data = memory.data(), .bytes = 10, .of = libfabric::MemoryDescription::Of::neuron}, true);
    FAIL() << "it was registered";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("expected a provider with FI_HMEM"), std::string::npos) << e.what();
  }
}

// A write that was meant for a former process at the address of this one must find no memory.
TEST(Fabric, AnEndpointsKeysAreNotThoseOfTheLastOne) {
  if (!offered({})) GTEST_SKIP() << libfabric::library_absence();
  std::vector<std::byte> memory(4096);
  std::set<std::uint64_t> keys;
  for (int turn = 0; turn < 3; ++turn) {
    const auto wire = libfabric::open_endpoint(libfabric::chosen({}));
    std::vector<std::unique_ptr<libfabric::MemoryRegion>> regions;
    for (int i = 0; i < 10; ++i) {
      regions.push_back(wire->region({.data = memory.data(), .bytes = memory.size()}, true));
      EXPECT_TRUE(keys.insert(regions.back()->key()).second);
    }
  }
}

}  // namespace
}  // namespace trellis::ccl

#endif
