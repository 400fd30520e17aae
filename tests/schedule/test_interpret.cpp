// The interpreter against sums and copies written out by hand, with numbers whose order of addition shows in the sum.
#include <gtest/gtest.h>

#include <cstring>

#include "schedule/proof/reference_interpreter.h"
#include "tests/schedule/buffers.h"
#include "tests/schedule/requests.h"

namespace trellis::schedule {
namespace {

double in(Rank r, std::int64_t chunk) { return static_cast<double>(r * 1000 + chunk) + 0.5; }

double add(std::span<const double* const> sources) {
  double total = 0;
  for (const double* s : sources) total += *s;
  return total;
}

double expected(const Task& t, const Wanted& want) {
  if (want.form == Wanted::Form::copy) return in(want.source, want.chunk);
  double total = 0;
  for (Rank r = 0; r < t.ranks; ++r) total += in(r, want.chunk);
  return total;
}

TEST(Interpret, EveryAlgorithmComputesItsCollective) {
  each_case(6, [](const Case& c) {
    const Schedule s = make(*c.algorithm, c.request);
    auto memory = memory_of<double>(s, in);
    interpret(s, memory, add);
    for (Rank r = 0; r < s.ranks(); ++r)
      for (std::int64_t i = 0; i < output_chunks(s.task, r); ++i) {
        const Wanted want = wanted(s.task, r, i);
        if (want.form == Wanted::Form::anything || want.form == Wanted::Form::all_arrived) continue;
        EXPECT_EQ(memory[r][cells(s.task, r).at(Buffer::output, i)], expected(s.task, want))
            << c.text() << " rank " << r;
      }
  });
}

TEST(Interpret, EveryAlgorithmFillsTheCallersBuffers) {
  std::mt19937 random(1);
  each_case(8, [&](const Case& c) {
    const Schedule s = make(*c.algorithm, c.request);
    for (int run = 0; run < 2; ++run) EXPECT_EQ(run_on_buffers(s, random), "") << c.text();
  });
}

TEST(Interpret, LeavesTheInputAloneOutOfPlace) {
  each_case(5, [](const Case& c) {
    if (c.request.operation.in_place) return;
    const Schedule s = make(*c.algorithm, c.request);
    auto memory = memory_of<double>(s, in);
    interpret(s, memory, add);
    for (Rank r = 0; r < s.ranks(); ++r)
      for (std::int64_t i = 0; i < input_chunks(s.task, r); ++i) EXPECT_EQ(memory[r][i], in(r, i)) << c.text();
  });
}

TEST(Interpret, AddsInTheOrderThatTheScheduleSays) {
  const Schedule s = make("ring", {.dims = {3}});
  auto memory = memory_of<float>(s, [](Rank r, std::int64_t) { return r == 0 ? 1e8f : r == 1 ? 1.f : -1e8f; });
  interpret(s, memory, [](std::span<const float* const> x) { return *x[0] + *x[1]; });
  // Chunk 0 starts on rank 1, so it is (1 - 1e8) + 1e8; chunk 2 starts on rank 0, so it is (1e8 + 1) - 1e8.
  const std::int64_t out = cells(s.task, 0).output;
  EXPECT_EQ(memory[0][out], (1.f + -1e8f) + 1e8f);
  EXPECT_EQ(memory[0][out + 2], (1e8f + 1.f) + -1e8f);
  for (Rank r = 1; r < 3; ++r) EXPECT_EQ(std::memcmp(&memory[r][out], &memory[0][out], 3 * sizeof(float)), 0);
}

TEST(Interpret, RefusesWhatCannotBeFollowed) {
  Schedule s = make("ring", {.dims = {2}});
  s.programs[0].steps.pop_back();
  auto memory = memory_of<double>(s, in);
  EXPECT_THROW(interpret(s, memory, add), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::schedule
