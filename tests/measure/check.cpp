// The closed form and the interpreter check each other: both give the same results of a pattern, and damaged results
// are noticed.
#include <gtest/gtest.h>

#include <cstring>

#include "ccl/plan/call_check.h"
#include "measure/data_pattern.h"
#include "measure/expected_results.h"
#include "measure/settings.h"
#include "tests/why.h"

namespace trellis::measure {
namespace {

using kernels::Reduction;
using schedule::Collective;

struct Outcome {
  std::uint64_t elements = 0, wrong = 0, noticed = 0;  // noticed: damaged elements that were counted
};

// Sums, products and copies computed here, without a schedule.
std::vector<std::byte> plainly(const std::vector<ccl::Call>& calls, const std::vector<std::vector<std::byte>>& inputs,
                               ccl::Rank rank) {
  const ccl::Call& call = calls[static_cast<std::size_t>(rank)];
  const std::size_t block = call.count * size_of(call.type), p = calls.size(), me = static_cast<std::size_t>(rank);
  const auto sum_from = [&](std::size_t at) {
    std::vector<const void*> sources;
    for (const auto& input : inputs) sources.push_back(input.data() + at);
    std::vector<std::byte> out(block);
    kernels::reduce(call.op.kind, call.type, sources, out.data(), call.count, {.factor = call.op.factor});
    return out;
  };
  std::vector<std::byte> out;
  const auto append = [&](const std::vector<std::byte>& from, std::size_t at) {
    out.insert(out.end(), from.begin() + static_cast<std::ptrdiff_t>(at),
               from.begin() + static_cast<std::ptrdiff_t>(at + block));
  };
  if (call.operation.collective == Collective::all_reduce) return sum_from(0);
  if (call.operation.collective == Collective::reduce_scatter) return sum_from(me * block);
  for (std::size_t r = 0; r < p; ++r)
    append(inputs[r], call.operation.collective == Collective::all_to_all ? me * block : 0);
  return out;
}

Outcome outcome(Collective collective, kernels::DType type, Reduction op, ccl::Rank ranks, bool ones) {
  BenchSettings s;
  s.op.collective = collective;
  const auto calls = calls_for(s, 6000 * size_of(type), type, op, 0, ranks);
  std::vector<std::vector<std::byte>> inputs;
  for (ccl::Rank r = 0; r < ranks; ++r) {
    inputs.emplace_back(ccl::extents_of(calls[static_cast<std::size_t>(r)], r, ranks).input);
    DataPattern(calls, r, 7, ones).fill(inputs.back().data());
  }
  Outcome all;
  for (ccl::Rank r = 0; r < ranks; ++r) {
    DataPattern pattern(calls, r, 7, ones);
    std::vector<std::byte> output = plainly(calls, inputs, r);
    all.elements += output.size() / size_of(type);
    all.wrong += pattern.wrong(output.data());
    const std::size_t last = output.size() - size_of(type);
    for (const std::size_t at : {std::size_t{0}, last}) output[at] ^= std::byte{1};
    all.noticed += pattern.wrong(output.data());
  }
  return all;
}

TEST(BenchPattern, IsExactInEveryTypeAndOperator) {
  for (const kernels::DType type : kernels::dtypes())
    for (std::size_t i = 0; i < kernels::reduction_count; ++i)
      for (const ccl::Rank ranks : {1, 2, 3, 8})
        for (const Collective c : {Collective::all_reduce, Collective::reduce_scatter}) {
          const Outcome o = outcome(c, type, static_cast<Reduction>(i), ranks, false);
          EXPECT_GT(o.elements, 0u);
          EXPECT_EQ(o.wrong, 0u) << name(type) << " " << kernels::name(static_cast<Reduction>(i)) << " " << ranks;
          EXPECT_EQ(o.noticed, 2u * static_cast<std::uint64_t>(ranks));
        }
}

// In f8e5m2, 9 is rounded to 8: twelve ones that are added one by one give 8, where a sum that is rounded once gives
// 12.
TEST(BenchPattern, OnesAreRefusedWhereTheirSumIsRounded) {
  const auto refused = [](Reduction op, kernels::DType type, ccl::Rank ranks) {
    return why([&] { outcome(Collective::all_reduce, type, op, ranks, true); });
  };
  EXPECT_EQ(refused(Reduction::sum, kernels::DType::f8e5m2, 12),
            "a sum of 9 ones is rounded in f8e5m2: expected 8 ranks at most, or --check 1, whose sums are exact");
  EXPECT_EQ(refused(Reduction::sum, kernels::DType::f8e5m2, 8), "");
  EXPECT_EQ(refused(Reduction::avg, kernels::DType::f8e4m3fn, 16), "");
  EXPECT_NE(refused(Reduction::avg, kernels::DType::f8e4m3fn, 17), "");
  EXPECT_EQ(refused(Reduction::max, kernels::DType::f8e5m2, 12), "");
  EXPECT_EQ(outcome(Collective::all_gather, kernels::DType::f8e5m2, Reduction::sum, 12, true).wrong, 0u);
}

TEST(BenchPattern, FollowsWhatIsCopied) {
  for (const Collective c : {Collective::all_gather, Collective::all_to_all})
    for (const ccl::Rank ranks : {1, 2, 5}) {
      const Outcome o = outcome(c, kernels::DType::bf16, Reduction::sum, ranks, false);
      EXPECT_EQ(o.wrong, 0u);
      EXPECT_EQ(o.noticed, 2u * static_cast<std::uint64_t>(ranks));
    }
}

TEST(BenchPattern, AllOnes) {
  EXPECT_EQ(outcome(Collective::all_reduce, kernels::DType::bf16, Reduction::sum, 5, true).wrong, 0u);
}

// Results in which the blocks of two ranks are swapped must count as wrong, as damaged ones do.
TEST(BenchPattern, TellsRanksApart) {
  BenchSettings s;
  s.op.collective = Collective::all_gather;
  const auto calls = calls_for(s, 4096, kernels::DType::u8, Reduction::sum, 0, 2);
  std::vector<std::byte> inputs[2];
  for (ccl::Rank r = 0; r < 2; ++r) {
    inputs[r].resize(2048);
    DataPattern(calls, r, 1).fill(inputs[r].data());
  }
  std::vector<std::byte> swapped = inputs[1];
  swapped.insert(swapped.end(), inputs[0].begin(), inputs[0].end());
  EXPECT_GT(DataPattern(calls, 0, 1).wrong(swapped.data()), 3000u);
}

TEST(BenchTruth, AgreesWithPlainSums) {
  BenchSettings s;
  s.op.collective = Collective::all_reduce;
  const auto calls = calls_for(s, 400, kernels::DType::i32, Reduction::sum, 0, 3);
  const auto outputs = true_outputs(schedule_of(calls.front(), 3, false, "ring*2"), calls, 5);
  ASSERT_EQ(outputs.size(), 3u);
  for (std::size_t i = 0; i < 100; ++i) {
    std::int32_t sum = 0;
    for (ccl::Rank r = 0; r < 3; ++r) {
      std::int32_t value = 0;
      std::memcpy(&value, random_input(calls.front(), r, 3, 5).data() + 4 * i, 4);
      sum += value;
    }
    std::int32_t is = 0;
    std::memcpy(&is, outputs[1].data() + 4 * i, 4);
    EXPECT_EQ(is, sum);
  }
}

}  // namespace
}  // namespace trellis::measure
