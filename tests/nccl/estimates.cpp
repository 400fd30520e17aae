// What ncclGroupSimulateEnd says of a group's time on a machine, against the simulator's own answers.
#include <algorithm>
#include <cstdlib>
#include <ranges>
#include <vector>

#include "sim/cluster/simulate.h"
#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

// Sets TRELLIS_SIMULATE while it lives.
struct Simulated {
  explicit Simulated(const char* machine) { setenv("TRELLIS_SIMULATE", machine, 1); }
  ~Simulated() { unsetenv("TRELLIS_SIMULATE"); }
};

float estimated(const std::function<void()>& calls) {
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT_TRUE(done(ncclGroupStart()));
  calls();
  EXPECT_TRUE(done(ncclGroupSimulateEnd(&info)));
  return info.estimatedTime;
}

double priced(const char* collective, std::size_t bytes, int ranks) {
  return 1e6 * simulate({.collective = collective, .bytes = bytes, .ranks = ranks, .interval = false}).seconds;
}

TEST(Nccl, ASimulatedGroupTellsItsTimeOnTheMachineThatIsNamed) {
  const Cliques c(4);
  const Simulated on("trn2.48xlarge");
  constexpr std::size_t count = 1 << 20;
  std::vector<float> in(4 * count), out(4 * count);
  const auto reduce_on = [&](int rank) {
    EXPECT_TRUE(done(ncclAllReduce(in.data(), out.data(), count, ncclFloat, ncclSum, c[rank], nullptr)));
  };
  const float one = estimated([&] { reduce_on(0); });
  EXPECT_NEAR(one, priced("all_reduce", 4 * count, 4), 0.02 * one);
  // One thread may make the calls of all ranks: together they are one collective. Two calls of one rank are two.
  EXPECT_EQ(estimated([&] { std::ranges::for_each(std::views::iota(0, 4), reduce_on); }), one);
  EXPECT_NEAR(estimated([&] { reduce_on(0), reduce_on(0); }), 2 * one, 0.02 * one);
  const float gathered = estimated([&] { ncclAllGather(in.data(), out.data(), count, ncclFloat, c[1], nullptr); });
  EXPECT_NEAR(gathered, priced("all_gather", 16 * count, 4), 0.02 * gathered);
  EXPECT_EQ(out, std::vector<float>(4 * count));
  EXPECT_EQ(estimated([] {}), NCCL_UNDEF_FLOAT);
}

TEST(Nccl, SendsAndReceivesOfASimulatedGroupRunAtOnce) {
  const Cliques c(4);
  const Simulated on("trn2.48xlarge");
  constexpr std::size_t count = 1 << 20;
  std::vector<float> in(count), out(count);
  const auto send = [&](int rank, int peer) { ncclSend(in.data(), count, ncclFloat, peer, c[rank], nullptr); };
  const auto receive = [&](int rank, int peer) { ncclRecv(out.data(), count, ncclFloat, peer, c[rank], nullptr); };
  const float one = estimated([&] { send(0, 1); });
  EXPECT_GT(one, 0);
  EXPECT_EQ(estimated([&] { send(0, 1), receive(1, 0); }), one);  // both ends of one message
  EXPECT_EQ(estimated([&] { receive(1, 0); }), one);
  const float both = estimated([&] { send(0, 1), send(2, 3); });
  EXPECT_LT(both, 1.5F * one);
  // The calls of one rank are taken as those of every rank: exchanging messages with all ranks is an all-to-all.
  const float all = estimated([&] {
    for (int peer = 0; peer < 4; ++peer) send(2, peer), receive(2, peer);
  });
  EXPECT_NEAR(all, priced("all_to_all", 16 * count, 4), 0.02 * all);
  const float shifted = estimated([&] { send(2, 3), receive(2, 1); });
  EXPECT_GE(shifted, one);
  EXPECT_LT(shifted, all);
}

TEST(Nccl, AMachineThatCannotBeSimulatedIsRefused) {
  const Cliques c(4);
  float in = 3, out = 0;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  for (const auto& [machine, words] :
       {std::pair("trn7", "TRELLIS_SIMULATE=trn7: "), std::pair("ring:2", "is for 4 ranks")}) {
    const Simulated on(machine);
    ASSERT_TRUE(done(ncclGroupStart()));
    EXPECT_TRUE(done(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, c[0], nullptr)));
    EXPECT_TRUE(refused(ncclGroupSimulateEnd(&info), ncclInvalidUsage, words));
    EXPECT_EQ(info.estimatedTime, NCCL_UNDEF_FLOAT);
  }
}

}  // namespace
}  // namespace trellis::nccl
