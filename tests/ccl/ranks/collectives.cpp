// Every collective, algorithm, type and operator over both transports, bit for bit as the interpreter has them.
#include <gtest/gtest.h>

#include "tests/ccl/ranks/cases.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using kernels::Reduction;

// Gives each call another type and operator, so that all have their turn.
void every_kind(Call& call, std::size_t turn) {
  call.type = kernels::dtypes()[turn % kernels::dtype_count];
  call.op.kind = static_cast<Reduction>(turn / 3 % kernels::reduction_count);
  call.op.factor = kernels::is_float(call.type) ? 0.5 : 2;
}

void narrow_sums(Call& call, std::size_t turn) {
  constexpr kernels::DType types[] = {kernels::DType::bf16, kernels::DType::f16, kernels::DType::f8e5m2};
  constexpr Reduction ops[] = {Reduction::sum, Reduction::scaled_sum, Reduction::prod, Reduction::avg};
  call.type = types[turn % 3];
  call.op = {ops[turn % 4], 0.3};
}

class Collectives : public testing::TestWithParam<std::tuple<std::string, Rank>> {};

TEST_P(Collectives, EveryAlgorithmGivesTheInterpretersBits) {
  const auto& [transport, ranks] = GetParam();
  const std::size_t many[] = {0, 1, 13, 1000};
  const std::size_t few[] = {13};
  EXPECT_EQ(run_cases(transport, ranks, sanitized || ranks > 5 ? std::span<const std::size_t>(few) : many, every_kind),
            "");
}

class Rounded : public Collectives {};

TEST_P(Rounded, RandomBitsAreTheSameWhereverAValueIsAddedUp) {
  const auto& [transport, ranks] = GetParam();
  const std::size_t counts[] = {200};
  EXPECT_EQ(run_cases(transport, ranks, counts, narrow_sums, {.rounding = kernels::Rounding::stochastic, .seed = 5}),
            "");
}

std::string name_of(const testing::TestParamInfo<std::tuple<std::string, Rank>>& p) {
  return std::get<0>(p.param) + "_" + std::to_string(std::get<1>(p.param));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives,
                         testing::ValuesIn(transports_and_ranks({1, 2, 3, 4, 5, 6, 7, 8, 9, 16}, {3, 4})), name_of);
INSTANTIATE_TEST_SUITE_P(Ranks, Rounded, testing::ValuesIn(transports_and_ranks({1, 2, 3, 4, 5, 6, 7, 8, 9, 16}, {})),
                         name_of);

// Large enough for slots, direct reads and several pieces.
TEST(Collectives, LargeMessages) {
  for (const std::string& transport : usable_transports())
    for (const char* algorithm : {"ring", "recursive_doubling", "mesh"}) {
      Case c;
      c.algorithm = algorithm;
      c.call.count = 1'000'003;
      EXPECT_EQ(run_ranks(transport, 3, [&](Communicator& comm) { run_case(comm, c, 1); }, {.algorithm = algorithm}),
                "");
    }
}

// Other processes cannot read ordinary memory, so data that are sent more than once are copied to memory that they can
// read.
TEST(Collectives, EveryAlgorithmShowsWhatItSendsOften) {
  const std::size_t counts[] = {35'001};
  EXPECT_EQ(run_cases("shared_memory", 4, counts, [](Call& c, std::size_t) { c.type = kernels::DType::f32; }), "");
}

}  // namespace
}  // namespace trellis::ccl
