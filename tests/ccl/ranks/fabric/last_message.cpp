// The last message of a lane, when the lane's rail stops.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "ccl/transports/libfabric/wire/library.h"
#include "tests/ccl/ranks/run.h"
#include "tests/faults/injected_faults.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;
using libfabric::InjectedFaults;

// A rank's last message on a lane is lost with a rail that stops, and the rank sends nothing further on that lane: it
// splits the communicator.
TEST(HostileFabric, WhatWasSentLastIsSentAgainWhileItsSenderDivides) {
  if (const std::string why = libfabric::library_absence(); !why.empty()) GTEST_SKIP() << why;
  constexpr int most = 4;
  const std::vector<std::string> said = at_once(most * most, [&](std::size_t at) {
    const int messages = 1 + static_cast<int>(at) / most, stop = 1 + static_cast<int>(at) % most;
    const InjectedFaults faults(fmt::format("stick={},only=1,early=1", stop));
    return run_ranks("libfabric", 2,
                     [&](Communicator& c) {
                       std::vector<std::int32_t> data(25'000, c.rank());
                       for (int i = 0; i < messages; ++i) {
                         if (c.rank() == 0) c.send(data.data(), data.size(), DType::i32, 1);
                         if (c.rank() == 1) c.recv(data.data(), data.size(), DType::i32, 0);
                         if (std::ranges::count(data, 0) != 25'000) throw std::runtime_error("the data");
                       }
                       c.split(0, c.rank());
                     },
                     {.timeout = 40s, .fabric = {.rails = 2}});
  });
  for (std::size_t at = 0; at < said.size(); ++at) EXPECT_EQ(said[at], "") << at;
}

// The only rail stops with the last messages of a rank that then closes its communicator. That rank stays until another
// rail is open, and its messages have arrived over it.
TEST(HostileFabric, WhatARankSentLastArrivesThoughItLeavesAndTheOnlyRailStops) {
  if (const std::string why = libfabric::library_absence(); !why.empty()) GTEST_SKIP() << why;
  constexpr int messages = 3;
  constexpr std::size_t stops = messages + 1;
  const std::vector<std::string> said = at_once(2 * stops, [&](std::size_t at) {
    const InjectedFaults faults(fmt::format("stick={},only=0,early=1", 1 + at / 2));
    const std::size_t count = at % 2 == 0 ? 700 : 25'000;  // eager, and large
    return run_ranks("libfabric", 2,
                     [&](Communicator& c) {
                       std::vector<std::int32_t> data(count, c.rank());
                       for (int i = 0; i < messages; ++i) {
                         if (c.rank() == 0) c.send(data.data(), count, DType::i32, 1);
                         if (c.rank() == 1) c.recv(data.data(), count, DType::i32, 0);
                         if (std::ranges::count(data, 0) != static_cast<std::ptrdiff_t>(count))
                           throw std::runtime_error("the data");
                       }
                     },
                     {.timeout = 40s});
  });
  for (std::size_t at = 0; at < said.size(); ++at) EXPECT_EQ(said[at], "") << at;
}

}  // namespace
}  // namespace trellis::ccl

#endif
