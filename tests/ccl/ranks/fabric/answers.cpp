// Answers between ranks for which a fabric has no room at first.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

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

// Half of the pieces fail, so the sender asks which are missing. Each message finds room only at its hundredth try, and
// each repeated request gets a reply of its own. Requests are signs of life, so no timeout ends the wait.
TEST(HostileFabric, AnAnswerForWhichThereIsNoRoomIsGivenLater) {
  if (const std::string why = libfabric::library_absence(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::size_t count = 500'000;
  const auto pass_on = [](Communicator& c) {
    alarm(120);
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<std::int32_t> data(count, c.rank() == 0 ? turn : -1);
      if (c.rank() == 0) c.send(data.data(), count, DType::i32, 1);
      if (c.rank() == 1) c.recv(data.data(), count, DType::i32, 0);
      if (std::ranges::count(data, turn) != count) throw std::runtime_error(fmt::format("turn {}", turn));
    }
  };
  const std::vector<std::string> said = at_once(4, [&](std::size_t way) {
    const InjectedFaults faults(fmt::format("seed={},refuse=100,fail=50,only=0", 1 + way / 2));
    return run_ranks("libfabric", 2, pass_on, {.timeout = 20s, .fabric = {.tagged = way % 2 != 0}});
  });
  for (std::size_t way = 0; way < said.size(); ++way) EXPECT_EQ(said[way], "") << way;
}

}  // namespace
}  // namespace trellis::ccl

#endif
