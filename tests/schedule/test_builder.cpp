// The Builder: derived order, places, rounds, windows, scratch.
#include "schedule/builder/builder.h"
#include "schedule/builder/hazard_tracker.h"
#include "schedule/builder/program_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/proof/verify.h"

namespace trellis::schedule {
namespace {

struct Bench {
  explicit Bench(const Task& t, std::optional<Rank> only = {}) : recorder(t, only), b(recorder, t.ranks) {}
  std::vector<Program> finish() { return recorder.finish(); }
  ProgramRecorder recorder;
  Builder b;
};

std::vector<std::int32_t> after(const Program& p, std::size_t i) {
  const auto view = p.after(p.steps.at(i));
  return {view.begin(), view.end()};
}

using Waits = std::vector<std::int32_t>;

TEST(HazardTracker, ReadsWaitForTheLastWriteAndWritesForTheReadsSince) {
  HazardTracker h;
  Waits w;
  h.write({0, 10}, 0, w);
  EXPECT_EQ(w, Waits{});
  h.read({2, 3}, 1, w);
  EXPECT_EQ(w, Waits{0});
  w.clear();
  h.write({4, 4}, 2, w);  // cell 4 was read by 1, cells 5 to 7 only written by 0
  EXPECT_EQ(w, (Waits{1, 0}));
  w.clear();
  h.read({0, 10}, 3, w);
  EXPECT_EQ(w, (Waits{0, 0, 2, 0}));
}

TEST(HazardTracker, KnowWhatWasNeverWritten) {
  HazardTracker h;
  Waits w;
  h.write({5, 5}, 0, w);
  h.read({0, 20}, 1, w);
  const auto gaps = h.unwritten({0, 20});
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].first, 0);
  EXPECT_EQ(gaps[0].count, 5);
  EXPECT_EQ(gaps[1].first, 10);
  EXPECT_EQ(gaps[1].count, 10);
  EXPECT_TRUE(h.unwritten({6, 3}).empty());
}

TEST(Builder, OrdersWritesAfterReads) {
  Bench t({.operation = {.collective = Collective::all_reduce, .in_place = true}, .ranks = 2, .pieces = 2});
  t.b.copy(data(0, 0), data(1, 1));
  t.b.copy(data(1, 0), data(0, 0));  // overwrites what rank 0 has just sent
  const auto programs = t.finish();
  EXPECT_EQ(programs[0].steps[1].op, Op::recv);
  EXPECT_EQ(after(programs[0], 1), Waits{0});
  EXPECT_EQ(after(programs[1], 1), Waits{});
}

TEST(Builder, ReadsTheInputUntilSomethingIsWritten) {
  Bench t({.operation = {.collective = Collective::all_reduce}, .ranks = 2, .pieces = 1});
  t.b.reduce(data(0, 0), data(1, 0));
  t.b.copy(data(1, 0), data(0, 0));
  const auto programs = t.finish();
  const Step& sum = programs[1].steps[0];
  EXPECT_EQ(sum.from.buffer, Buffer::input);
  EXPECT_EQ(sum.to.buffer, Buffer::output);
  EXPECT_EQ(programs[1].steps[1].from.buffer, Buffer::output);
}

TEST(Builder, BringsAScatteredRunTogetherBeforeSendingIt) {
  Bench t({.operation = {.collective = Collective::all_gather}, .ranks = 4, .pieces = 1});
  t.b.copy(data(0, 0), data(1, 0));
  t.b.copy(data(1, 0, 2), data(2, 0, 2));  // block 0 has arrived in the output, block 1 is still in the input
  const auto programs = t.finish();
  const auto send = std::ranges::find(programs[1].steps, Op::send, &Step::op);
  ASSERT_NE(send, programs[1].steps.end());
  EXPECT_EQ(send->from, (Slice{0, 2, Buffer::output}));
  EXPECT_EQ(after(programs[1], send - programs[1].steps.begin()).size(), 2u);
}

TEST(Builder, SettlesWhatTheOutputMustHold) {
  Bench t({.operation = {.collective = Collective::all_gather}, .ranks = 1, .pieces = 3});
  const auto programs = t.finish();
  ASSERT_EQ(programs[0].steps.size(), 1u);
  EXPECT_EQ(programs[0].steps[0].op, Op::copy);
  EXPECT_EQ(programs[0].steps[0].to.count, 3);
  Bench in_place({.operation = {.collective = Collective::all_gather, .in_place = true}, .ranks = 1});
  EXPECT_TRUE(in_place.finish()[0].steps.empty());
}

TEST(Builder, ListsARoundsSendsFirst) {
  Bench t({.operation = {.collective = Collective::all_reduce, .in_place = true}, .ranks = 3, .pieces = 3});
  for (Rank r : t.b.senders([](Rank me) { return (me + 2) % 3; })) t.b.copy(data(r, r), data((r + 1) % 3, r));
  for (const Program& p : t.finish()) {
    EXPECT_EQ(p.steps[0].op, Op::send);
    EXPECT_EQ(p.steps[1].op, Op::recv);
  }
}

TEST(Builder, UsesScratchAgainOnceItIsSpent) {
  Bench t({.operation = {.collective = Collective::reduce_scatter}, .ranks = 64, .pieces = 1});
  for (Rank step = 1; step < 64; ++step)
    for (Rank r : t.b.senders([](Rank me) { return (me + 63) % 64; })) {
      const Rank block = (r + 64 - step) % 64;
      t.b.reduce(data(r, block), data((r + 1) % 64, block));
    }
  Schedule s{.task = t.recorder.task(), .algorithm = "by hand", .programs = t.finish()};
  EXPECT_TRUE(verify(s).ok()) << verify(s).text();
  for (const Program& p : s.programs) EXPECT_LE(p.scratch, 6);
}

TEST(Builder, KeepsScratchApartWhoseSizesDiffer) {
  Bench t({.operation = {.collective = Collective::reduce_scatter_v}, .ranks = 3, .pieces = 1});
  for (Rank step = 1; step < 3; ++step)
    for (Rank r : t.b.senders([](Rank me) { return (me + 2) % 3; })) {
      const Rank block = (r + 3 - step) % 3;
      t.b.reduce(data(r, block), data((r + 1) % 3, block));
    }
  Schedule s{.task = t.recorder.task(), .algorithm = "by hand", .programs = t.finish()};
  EXPECT_TRUE(verify(s).ok()) << verify(s).text();
}

TEST(Builder, SplitsRunsThatAWindowTearsApart) {
  Bench t({.operation = {.collective = Collective::all_reduce, .in_place = true}, .ranks = 2, .pieces = 12});
  SubMachine part{.count = 2};
  part.data = {.base = 0, .grain = 1, .digits = {{2, 1}, {3, 4}}};  // the window's chunks: 0 1, 4 5, 8 9
  Builder window = t.b.part(part);
  window.copy(data(0, 1, 4), data(1, 1, 4));
  const auto programs = t.finish();
  ASSERT_EQ(programs[0].steps.size(), 3u);
  EXPECT_EQ(programs[0].steps[0].from, (Slice{1, 1, Buffer::output}));
  EXPECT_EQ(programs[0].steps[1].from, (Slice{4, 2, Buffer::output}));
  EXPECT_EQ(programs[0].steps[2].from, (Slice{8, 1, Buffer::output}));
}

TEST(Builder, RecordsOneRankAlone) {
  Bench t({.operation = {.collective = Collective::all_reduce}, .ranks = 1'000'000, .pieces = 1}, 17);
  t.b.copy(data(16, 0), data(17, 0));
  t.b.copy(data(3, 0), data(4, 0));
  EXPECT_EQ(t.b.senders([](Rank me) { return me - 1; }), (std::vector<Rank>{16, 17}));
  const auto programs = t.finish();
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_EQ(programs[0].steps.size(), 1u);
}

TEST(Builder, RefusesTooMuch) {
  EXPECT_THROW(ProgramRecorder({.ranks = 2'000'000}), std::invalid_argument);
  EXPECT_THROW(ProgramRecorder({.ranks = 4}, 4), std::invalid_argument);
  EXPECT_THROW(ProgramRecorder({.ranks = 4}, -1), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::schedule
