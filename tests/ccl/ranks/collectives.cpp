// Every collective, algorithm, type and operator over both transports, bit for bit as the interpreter has them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "ccl/check.h"
#include "schedule/algorithm.h"
#include "tests/ccl/ranks/run.h"
#include "tests/ccl/ranks/truth.h"

namespace trellis::ccl {
namespace {

using Bytes = std::vector<std::byte>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// A call, and how it is served.
struct Case {
  Call call;
  std::string algorithm;
  bool in_place = false;
};

std::string text(const Case& c) {
  return fmt::format("{} by {} of {} {} {}{}", schedule::name(c.call.collective), c.algorithm, c.call.count,
                     name(c.call.type), name(c.call.op.kind), c.in_place ? " in place" : "");
}

// One buffer for both where the call is in place.
void run_case(Communicator& comm, const Case& c, std::uint64_t seed) {
  Call call = c.call;
  const Extents e = extents_of(call, comm.rank(), comm.ranks());
  const Bytes input = input_of(call, comm.rank(), comm.ranks(), seed);
  Bytes memory(e.input + e.output, std::byte{0x5A});
  std::byte* in = memory.data();
  std::byte* out = memory.data() + e.input;
  if (c.in_place && e.input != 0 && e.output != 0) {
    std::size_t own = std::min(e.input, e.output) * static_cast<std::size_t>(comm.rank());
    if (schedule::uneven(call.collective))
      own = kernels::size_of(call.type) *
            std::accumulate(call.counts.begin(), call.counts.begin() + comm.rank(), std::size_t{0});
    out = in = memory.data();
    if (e.input < e.output) in += own;
    if (e.output < e.input) out += own;
  }
  if (e.input != 0) std::memcpy(in, input.data(), e.input);
  call.input = in;
  call.output = out;
  const auto before = comm.operations();
  comm.run(call);
  const auto wanted = outputs_of(c.call, comm.ranks(), c.in_place && c.call.op.kind != kernels::Reduction::scaled_sum,
                                 c.algorithm, seed, comm.config(), before + 1)[static_cast<std::size_t>(comm.rank())];
  if (wanted.size() != e.output || (e.output != 0 && std::memcmp(wanted.data(), out, e.output) != 0))
    throw std::runtime_error(text(c) + ": wrong");
}

// All that a number of ranks can do: each algorithm for each collective that it serves, types and operators in turn.
std::vector<Case> cases_for(Rank ranks, std::span<const std::size_t> counts) {
  std::vector<Case> cases;
  std::size_t turn = 0;
  for (const auto& [name, algorithm] : schedule::algorithms())
    for (Collective collective : algorithm.serves)
      for (bool in_place : {false, true})
        for (std::size_t count : counts) {
          Case c{{.collective = collective, .count = count}, name, in_place};
          if (collective == Collective::all_to_all_v && in_place) continue;
          const schedule::Request r{.collective = collective, .dims = {ranks}, .in_place = in_place};
          if (!schedule::refusal(algorithm, r).empty()) continue;
          if (schedule::task_of(algorithm, r).even)
            c.call.count = count * static_cast<std::size_t>(schedule::task_of(algorithm, r).pieces);
          c.call.type = kernels::dtypes()[turn % kernels::dtype_count];
          c.call.op.kind = static_cast<kernels::Reduction>(turn / 3 % kernels::reduction_count);
          c.call.op.factor = kernels::is_float(c.call.type) ? 0.5 : 2;
          if (collective == Collective::all_gather_v || collective == Collective::reduce_scatter_v)
            for (Rank q = 0; q < ranks; ++q) c.call.counts.push_back(count + static_cast<std::size_t>(q) % 3 * 7);
          if (collective == Collective::all_to_all_v)
            c.call.counts = c.call.arriving_counts = std::vector<std::size_t>(static_cast<std::size_t>(ranks), count);
          if (collective == Collective::send_recv || collective == Collective::permute) continue;
          if (collective == Collective::barrier) c.call.count = 0;
          cases.push_back(c);
          ++turn;
        }
  return cases;
}

// An algorithm is fixed by the configuration, so each has a communicator of its own.
std::string run_all(std::string_view transport, Rank ranks, std::span<const std::size_t> counts) {
  std::map<std::string, std::vector<Case>> by_algorithm;
  for (const Case& c : cases_for(ranks, counts)) by_algorithm[c.algorithm].push_back(c);
  std::string wrong;
  for (const auto& [algorithm, cases] : by_algorithm)
    wrong += run_ranks(transport, ranks,
                       [&](Communicator& comm) {
                         for (std::size_t i = 0; i < cases.size(); ++i) run_case(comm, cases[i], i);
                       },
                       {.timeout = std::chrono::seconds(60), .algorithm = algorithm});
  return wrong;
}

class Collectives : public testing::TestWithParam<std::tuple<std::string, Rank>> {};

TEST_P(Collectives, EveryAlgorithmGivesTheInterpretersBits) {
  const auto& [transport, ranks] = GetParam();
  const std::size_t many[] = {0, 1, 13, 1000};
  const std::size_t few[] = {13};
  EXPECT_EQ(run_all(transport, ranks, sanitized || ranks > 5 ? std::span<const std::size_t>(few) : many), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives,
                         testing::Combine(testing::Values("loopback", "shared_memory"),
                                          testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16)),
                         [](const auto& p) {
                           return std::get<0>(p.param) + "_" + std::to_string(std::get<1>(p.param));
                         });

// Large enough for slots, direct reads and several pieces.
TEST(Collectives, LargeMessages) {
  for (const char* transport : {"loopback", "shared_memory"})
    for (const char* algorithm : {"ring", "recursive_doubling", "mesh"}) {
      const Case c{{.count = 1'000'003}, algorithm};
      EXPECT_EQ(run_ranks(transport, 3, [&](Communicator& comm) { run_case(comm, c, 1); }, {.algorithm = algorithm}),
                "");
    }
}

}  // namespace
}  // namespace trellis::ccl
