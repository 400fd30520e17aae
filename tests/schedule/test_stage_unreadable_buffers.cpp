// Programs rewritten for buffers that peers can't read: same results, same messages.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/in_place_slices.h"
#include "schedule/proof/verify.h"
#include "schedule/stage_unreadable_buffers.h"
#include "tests/schedule/requests.h"

namespace trellis::schedule {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr Rank most_ranks = 5;
#else
constexpr Rank most_ranks = 8;
#endif

constexpr UnreadableBuffers both{.input = true, .output = true};

struct Message {
  Op op;
  std::uint8_t channel;
  std::int32_t chunks;
  End end, second;
  bool operator==(const Message&) const = default;
};

std::vector<Message> messages(const Program& program) {
  std::vector<Message> found;
  for (const Step& s : program.steps)
    if (sends(s.op) || receives(s.op))
      found.push_back({s.op, s.channel, sends(s.op) ? s.from.count : s.to.count, s.end, s.second});
  return found;
}

std::ptrdiff_t sends_from(const Program& program, Buffer buffer) {
  return std::ranges::count_if(program.steps, [&](const Step& s) { return sends(s.op) && s.from.buffer == buffer; });
}

Schedule made(std::string_view algorithm, Collective c, Rank ranks, bool in_place = false) {
  return make(algorithm, {.operation = {.collective = c, .in_place = in_place}, .dims = {ranks}});
}

// Rewrites each rank's program for another set of unreadable buffers.
Schedule differently_shown(Schedule s) {
  for (Rank r = 0; r < s.ranks(); ++r) {
    Program& program = s.programs[static_cast<std::size_t>(r)];
    program = stage_unreadable_buffers(s.task, r, program, {.input = r % 2 == 0, .output = r / 2 % 2 == 0}).program;
  }
  return s;
}

class EveryAlgorithmStaged : public testing::TestWithParam<const Algorithm*> {};

std::vector<const Algorithm*> all() {
  std::vector<const Algorithm*> list;
  for (const auto& [name, algorithm] : algorithms()) list.push_back(&algorithm);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithmStaged, testing::ValuesIn(all()),
                         [](const auto& algorithm) { return algorithm.param->name; });

TEST_P(EveryAlgorithmStaged, IsProvedAndExchangesTheSame) {
  each_case(*GetParam(), most_ranks, [&](const Case& c) {
    const Schedule whole = make(*c.algorithm, c.request);
    for (const UnreadableBuffers hidden : {UnreadableBuffers{.input = true}, UnreadableBuffers{.output = true}, both}) {
      const Schedule changed = stage_unreadable_buffers(whole, hidden);
      const Report report = verify(changed);
      ASSERT_TRUE(report.ok()) << c.text() << ": " << report.text();
      for (std::size_t r = 0; r < whole.programs.size(); ++r)
        ASSERT_EQ(messages(changed.programs[r]), messages(whole.programs[r])) << c.text() << " rank " << r;
    }
    const Report mixed = verify(differently_shown(whole));
    ASSERT_TRUE(mixed.ok()) << c.text() << ": " << mixed.text();
  });
}

TEST(StagedProgram, WhatIsMadeAndSentIsMadeInScratch) {
  for (const char* name : {"mesh", "ring", "halving_doubling", "bine", "two_step", "recursive_doubling"})
    for (const bool in_place : {false, true}) {
      const Schedule changed =
          stage_unreadable_buffers(made(name, Collective::all_reduce, 8, in_place), {.output = true});
      for (const Program& program : changed.programs) {
        const std::ptrdiff_t given =
            in_place ? sends_from(made(name, Collective::all_reduce, 8).programs[0], Buffer::input) : 0;
        EXPECT_LE(sends_from(program, Buffer::output), given) << name;
      }
    }
}

TEST(StagedProgram, WhatIsSentOftenIsCopiedOnce) {
  for (const Program& program : stage_unreadable_buffers(made("direct", Collective::all_gather, 5), both).programs) {
    EXPECT_EQ(sends_from(program, Buffer::input), 0);
    EXPECT_EQ(sends_from(program, Buffer::scratch), 4);
    EXPECT_EQ(std::ranges::count_if(program.steps,
                                    [](const Step& s) { return s.op == Op::copy && s.to.buffer == Buffer::scratch; }),
              1);
    EXPECT_EQ(program.scratch, 1);
  }
}

TEST(StagedProgram, WhatIsSentOnceIsLeftWhereItIs) {
  for (const auto& [name, collective] :
       {std::pair("direct", Collective::all_to_all), std::pair("ring", Collective::reduce_scatter)}) {
    const Schedule whole = made(name, collective, 4), changed = stage_unreadable_buffers(whole, both);
    for (std::size_t r = 0; r < 4; ++r) EXPECT_TRUE(same(changed.programs[r], whole.programs[r])) << name;
  }
}

// In place, the first of rank 0's two input chunks is also its output; the second is not.
TEST(StagedProgram, WhatLiesInTwoBuffersIsLeftWhereItIs) {
  const Task task = task_of(algorithm_named("ring"),
                            {.operation = {.collective = Collective::reduce_scatter, .in_place = true}, .dims = {2}});
  Program program;
  const Slice both_chunks{0, 2, Buffer::input}, first{0, 1, Buffer::output};
  program.steps = {{.op = Op::send, .from = both_chunks, .end = {.peer = 1, .tag = 0}},
                   {.op = Op::recv, .to = first, .end = {.peer = 1, .tag = 0}},
                   {.op = Op::send, .from = both_chunks, .end = {.peer = 1, .tag = 1}}};
  ASSERT_TRUE(straddles(task, 0, both_chunks));
  EXPECT_FALSE(straddles(task, 0, {0, 1, Buffer::input}));
  EXPECT_FALSE(straddles(task, 0, {1, 1, Buffer::input}));
  EXPECT_TRUE(same(stage_unreadable_buffers(task, 0, program, both).program, program));
}

TEST(StagedProgram, WhatPeersReadIsLeftWhereItIs) {
  const Schedule whole = made("mesh", Collective::all_reduce, 4), changed = stage_unreadable_buffers(whole, {});
  for (std::size_t r = 0; r < 4; ++r) EXPECT_TRUE(same(changed.programs[r], whole.programs[r]));
}

TEST(StagedProgram, EachStepKnowsItsOrigin) {
  const Schedule whole = made("mesh", Collective::all_reduce, 4);
  const Program& before = whole.programs[1];
  const StagedProgram after = stage_unreadable_buffers(whole.task, 1, before, both);
  ASSERT_EQ(after.origins.size(), after.program.steps.size());
  EXPECT_GT(after.program.steps.size(), before.steps.size());
  for (std::size_t i = 0; i < after.origins.size(); ++i) {
    const Step &now = after.program.steps[i], &was = before.steps[static_cast<std::size_t>(after.origins[i])];
    if (now.op != Op::copy) {
      EXPECT_EQ(now.op, was.op);
      EXPECT_EQ(now.end, was.end);
    }
  }
}

}  // namespace
}  // namespace trellis::schedule
