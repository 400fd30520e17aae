// A rank of a job that hosts_test.py starts, one on each of several hosts. The last host is cut off.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/rendezvous/environment.h"

namespace trellis::ccl {
namespace {

// Sums until another rank is lost.
PeerLost loss_in_sums(Communicator& c) {
  std::vector<float> data(50'000, 1.0F);
  try {
    for (;;) c.all_reduce(data.data(), data.data(), data.size(), kernels::DType::f32);
  } catch (const PeerLost& lost) {
    return lost;
  }
}

TEST(Hosts, TheOthersGoOnWithoutTheOneThatIsCutOff) {
  const Launched l = launched_from_environment();
  if (l.by.empty()) GTEST_SKIP() << "hosts_test.py starts its ranks";
  const Config config = config_from_environment();
  const auto c =
      Communicator::create(store_from_environment(l, Clock::now() + config.timeout), l.rank, l.ranks, config);
  std::printf("joined\n");
  std::fflush(stdout);
  const PeerLost lost = loss_in_sums(*c);
  ASSERT_EQ(lost.rank, l.ranks - 1) << lost.what();
  EXPECT_NE(std::string(lost.what()).find(" on host host" + std::to_string(lost.rank)), std::string::npos)
      << lost.what();
  const auto rest = c->shrink(std::array{lost.rank});
  std::int32_t one = 1;
  rest->all_reduce(&one, &one, 1, kernels::DType::i32);
  EXPECT_EQ(one, l.ranks - 1);
}

}  // namespace
}  // namespace trellis::ccl
