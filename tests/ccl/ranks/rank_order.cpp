// Ranks in any order on their hosts get right results, by the algorithm that sends little between hosts.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "ccl/plan/call_check.h"
#include "ccl/transports/libfabric/wire/library.h"
#include "tests/ccl/ranks/cases.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

void floats(Call& call, std::size_t turn) {
  constexpr kernels::Reduction ops[] = {kernels::Reduction::sum, kernels::Reduction::avg, kernels::Reduction::max};
  call.op = {ops[turn % 3]};
}

std::string chosen(const Communicator& c, Call call) {
  const BufferBytes e = extents_of(call, c.rank(), c.ranks());
  std::vector<std::byte> memory(e.input + e.output);
  call.input = memory.data();
  call.output = memory.data() + e.input;
  return c.algorithm(call);
}

// Runs every collective that `hierarchical` serves. The ranks choose the config, which must begin with `algorithm`.
void run_all(Communicator& c, std::string_view algorithm) {
  constexpr std::size_t counts[] = {3, 20'000};
  std::size_t number = 0;
  for (Case one : cases_for(c.ranks(), counts, floats)) {
    if (one.algorithm != "hierarchical") continue;
    one.algorithm = chosen(c, one.call);
    if (!one.algorithm.starts_with(algorithm))
      throw std::runtime_error(fmt::format("{} by {}", schedule::name(one.call.operation.collective), one.algorithm));
    run_case(c, one, ++number);
  }
  if (number < 30) throw std::runtime_error(fmt::format("{} cases", number));
}

class RankOrderFabric : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(RankOrderFabric, GivesRightResults) {
  if (!libfabric::library_absence().empty()) GTEST_SKIP() << libfabric::library_absence();
  const std::string hosts = GetParam().first;
  EXPECT_EQ(run_ranks("hybrid", static_cast<Rank>(hosts.size()), [](Communicator& c) { run_all(c, GetParam().second); },
                      {.timeout = 60s, .fabric = {.host = std::string(hosts_by_rank) + hosts}}),
            "");
}

// Ranks are placed host by host, by turns (as by mpirun --map-by node), as a rank file may place them, and on hosts
// with different numbers of ranks.
INSTANTIATE_TEST_SUITE_P(Hosts, RankOrderFabric,
                         testing::Values(std::pair{"AAABBB", "hierarchical"}, std::pair{"ABABAB", "hierarchical"},
                                         std::pair{"ABBABA", "hierarchical"}, std::pair{"ABCCBA", "hierarchical"},
                                         std::pair{"ABBAB", ""}),
                         [](const auto& p) { return p.param.first; });

// A split orders its ranks by their keys.
TEST(RankOrderFabric, OfASplitIsThatOfItsKeys) {
  if (!libfabric::library_absence().empty()) GTEST_SKIP() << libfabric::library_absence();
  constexpr int keys[] = {0, 3, 1, 2};
  EXPECT_EQ(run_ranks("hybrid", 4,
                      [&](Communicator& c) {
                        const auto mixed = c.split(0, keys[c.rank()]);
                        const std::string sum = chosen(*mixed, {.count = 10});
                        if (sum.find("dims=2x2 numbering=(0,3,1,2)") == sum.npos) throw std::runtime_error(sum);
                        run_all(*mixed, "hierarchical");
                      },
                      {.timeout = 60s, .fabric = {.host = std::string(hosts_by_rank) + "AABB"}}),
            "");
}

}  // namespace
}  // namespace trellis::ccl

#endif
