// Planted faults, and the words in which verify reports them.
#include "schedule/verify.h"

#include <gtest/gtest.h>

#include "schedule/algorithm.h"

namespace trellis::schedule {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

Step& find(Schedule& s, Rank rank, Op op, int nth = 0) {
  for (Step& step : s.programs[rank].steps)
    if (step.op == op && nth-- == 0) return step;
  throw std::logic_error("no such step");
}

AssertionResult reports(const Schedule& s, Rank rank, std::string_view words) {
  const Report report = verify(s);
  if (report.ok()) return AssertionFailure() << "accepted";
  if (report.fault->rank != rank)
    return AssertionFailure() << "blames rank " << report.fault->rank << ": " << report.text();
  if (report.text().find(words) == std::string::npos) return AssertionFailure() << report.text();
  return AssertionSuccess();
}

TEST(Verify, AcceptsAndCounts) {
  const Report report = verify(make("ring", {.dims = {4}}));
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.transfers, 24);
  EXPECT_TRUE(report.same_bits_everywhere);
  EXPECT_NE(report.text().find("proved"), std::string::npos);
}

TEST(Verify, NamesAMissingContribution) {
  Schedule s = make("ring", {.dims = {4}});
  Step& sum = find(s, 2, Op::recv_reduce);
  sum.op = Op::recv;
  sum.from = {};
  const Report report = verify(s);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.text().find("missing"), std::string::npos) << report.text();
}

TEST(Verify, NamesARace) {
  Schedule s = make("ring", {.dims = {4}});
  for (Step& step : s.programs[1].steps)
    if (step.op == Op::send && step.after.count > 0) {
      step.after = {};
      break;
    }
  EXPECT_TRUE(reports(s, 1, "races with step"));
}

TEST(Verify, NamesTransfersThatDoNotMeet) {
  Schedule s = make("ring", {.dims = {4}});
  find(s, 3, Op::send, 1).end.tag = 77;
  EXPECT_TRUE(reports(s, 3, "is received by no step there"));
  s = make("ring", {.dims = {4}});
  find(s, 3, Op::send, 1).end.peer = 9;
  EXPECT_TRUE(reports(s, 3, "names no other rank"));
  s = make("ring", {.dims = {4}});
  find(s, 0, Op::recv_reduce, 1).end.tag = 0;
  EXPECT_TRUE(reports(s, 0, "a second time"));
}

TEST(Verify, NamesACircleOfWaits) {
  Schedule s = make("direct", {.collective = Collective::send_recv, .dims = {2}, .root = 0, .peer = 1});
  // Each rank sends only after it has received.
  for (Rank r : {0, 1}) {
    Program& p = s.programs[r];
    p = {};
    p.scratch = 1;
    p.rooms = {{1, 0}};
    Step receive{.op = Op::recv, .to = {0, 1, Buffer::scratch}, .end = {1 - r, 0}};
    Step send{.op = Op::send, .from = {0, 1, Buffer::scratch}, .end = {1 - r, 0}};
    p.set_after(send, std::vector<std::int32_t>{0});
    p.steps = {receive, send};
  }
  const Report report = verify(s);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.text().find("deadlock"), std::string::npos) << report.text();
  EXPECT_NE(report.text().find("which waits for the first"), std::string::npos) << report.text();
}

TEST(Verify, NamesWritesToTheInputAndBounds) {
  Schedule s = make("ring", {.dims = {4}});
  find(s, 0, Op::recv_reduce).to.buffer = Buffer::input;
  EXPECT_TRUE(reports(s, 0, "writes to the caller's input"));
  s = make("ring", {.dims = {4}});
  find(s, 1, Op::send).from.first = 4;
  EXPECT_TRUE(reports(s, 1, "of which this rank has 4"));
  s = make("ring", {.dims = {4}});
  find(s, 1, Op::send).from.count = 0;
  EXPECT_TRUE(reports(s, 1, "names 0 from"));
}

TEST(Verify, NamesChunksWhoseSizesDiffer) {
  Schedule s = make("ring", {.dims = {4}});
  find(s, 1, Op::recv).to.first ^= 1;
  const Report report = verify(s);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.text().find("size can differ"), std::string::npos) << report.text();
}

TEST(Verify, NamesARightSumThatIsOfAnotherBlock) {
  Schedule s = make("direct", {.collective = Collective::reduce_scatter, .dims = {3}});
  // All ranks send, add up and keep what belongs to rank 0.
  for (Program& p : s.programs) {
    for (Step& step : p.steps)
      if (reads(step.op) && step.from.buffer == Buffer::input) step.from.first = 0;
    for (Slice& slice : p.slices)
      if (slice.buffer == Buffer::input) slice.first = 0;
  }
  EXPECT_TRUE(reports(s, 1, "in[0] of rank 0 is in it"));
}

TEST(Verify, RefusesValuesThatMeanNothing) {
  const auto broken = [](auto edit) {
    Schedule s = make("ring", {.dims = {4}});
    edit(s);
    return s;
  };
  EXPECT_TRUE(reports(broken([](Schedule& s) { find(s, 1, Op::send).from.buffer = static_cast<Buffer>(3); }), 1,
                      "names a buffer that no rank has"));
  EXPECT_TRUE(reports(broken([](Schedule& s) { find(s, 2, Op::recv).after.count = 1'000'000; }), 2,
                      "points beyond its program's lists"));
  EXPECT_TRUE(reports(broken([](Schedule& s) { find(s, 2, Op::recv).further.first = 1'000'000; }), 2,
                      "points beyond its program's lists"));
  EXPECT_TRUE(reports(broken([](Schedule& s) { s.channels = 0; }), -1, "0 channels: expected 1 to 256"));
  EXPECT_TRUE(reports(broken([](Schedule& s) { s.channels = 257; }), -1, "257 channels: expected 1 to 256"));
  EXPECT_THROW(check(Task{.collective = static_cast<Collective>(collectives().size())}), std::invalid_argument);

  Schedule local = make("direct", {.collective = Collective::all_to_all, .dims = {2}});
  find(local, 1, Op::copy).op = static_cast<Op>(op_count);
  EXPECT_TRUE(reports(local, 1, "is of no kind that there is"));
}

TEST(Verify, NamesAWaitForALaterStep) {
  Schedule s = make("ring", {.dims = {4}});
  Program& p = s.programs[2];
  p.set_after(p.steps[0], std::vector<std::int32_t>{3});
  EXPECT_TRUE(reports(s, 2, "which is not before it"));
}

TEST(Verify, AcceptsOrderThatGoesThroughAnotherRank) {
  // Rank 0 sends its chunk to rank 1 and gets it back into the place it sent from: the data itself is the order.
  Schedule s;
  s.task = {.collective = Collective::all_reduce, .ranks = 2, .in_place = true, .even = true};
  s.programs.resize(2);
  const Slice chunk{0, 1, Buffer::output};
  Program& zero = s.programs[0];
  zero.steps = {{.op = Op::send, .from = chunk, .end = {1, 0}}, {.op = Op::recv, .to = chunk, .end = {1, 0}}};
  Program& one = s.programs[1];
  Step sum{.op = Op::recv_reduce, .to = chunk, .from = chunk, .end = {0, 0}};
  Step back{.op = Op::send, .from = chunk, .end = {0, 0}};
  one.set_after(back, std::vector<std::int32_t>{0});
  one.steps = {sum, back};
  // The receive may start before the send has ended: only what the send has delivered is ordered, not its end.
  EXPECT_TRUE(reports(s, 0, "races with step"));
  zero.set_after(zero.steps[1], std::vector<std::int32_t>{0});
  EXPECT_TRUE(verify(s).ok()) << verify(s).text();
}

TEST(Verify, RefusesASumThatHalfOverlapsWhatItReads) {
  // Right only if chunks are summed in ascending order, which nobody promises.
  Schedule s;
  s.task = {.collective = Collective::reduce_scatter, .ranks = 2};
  s.programs.resize(2);
  Program& zero = s.programs[0];
  zero.scratch = 3;
  zero.rooms = {{1, 0}, {1, 0}, {1, 0}};
  Step sum{.op = Op::reduce, .to = {0, 2, Buffer::scratch}, .from = {0, 2, Buffer::input}};
  zero.set_further(sum, std::vector<Slice>{{1, 2, Buffer::scratch}});
  zero.set_after(sum, std::vector<std::int32_t>{0});
  zero.steps = {{.op = Op::recv, .to = {1, 2, Buffer::scratch}, .end = {1, 0}}, sum};
  s.programs[1].steps = {{.op = Op::send, .from = {0, 2, Buffer::input}, .end = {0, 0}}};
  EXPECT_TRUE(reports(s, 0, "overlaps its own chunks half-way"));
}

TEST(Verify, RefusesTasksThatVoidTheProof) {
  EXPECT_THROW(check({.collective = Collective::all_to_all_v, .ranks = 3, .in_place = true}), std::invalid_argument);
  EXPECT_THROW(check({.collective = Collective::all_gather_v, .ranks = 3, .even = true}), std::invalid_argument);
  EXPECT_THROW(check({.collective = Collective::all_reduce, .ranks = 3, .root = 1}), std::invalid_argument);
  EXPECT_THROW(check({.collective = Collective::all_reduce, .ranks = 3, .peer = 1}), std::invalid_argument);
}

TEST(Verify, NamesGapsInTagsAndIdleFields) {
  Schedule s = make("ring", {.dims = {4}});
  find(s, 1, Op::send, 5).end.tag = 6;
  find(s, 2, Op::recv, 2).end.tag = 6;
  EXPECT_TRUE(reports(s, 2, "but none is numbered 5"));
  s = make("ring", {.dims = {4}});
  find(s, 1, Op::recv).from = {0, 1, Buffer::input};
  EXPECT_TRUE(reports(s, 1, "has no use for"));
  s = make("ring", {.dims = {4}});
  find(s, 1, Op::recv).second = {2, 0};
  EXPECT_TRUE(reports(s, 1, "has no use for"));
}

TEST(Verify, TellsWhenRanksAddUpInDifferentOrders) {
  Schedule s = make("ring", {.dims = {3}});
  EXPECT_TRUE(verify(s).same_bits_everywhere);
  Schedule t;
  t.task = {.collective = Collective::all_reduce, .ranks = 3, .in_place = false, .even = true};
  t.programs.resize(3);
  for (Rank r = 0; r < 3; ++r) {  // each adds what it gets from its neighbours to its own, starting with its own
    Program& p = t.programs[r];
    p.scratch = 2;
    for (Rank by : {1, 2}) {
      p.steps.push_back({.op = Op::send, .from = {0, 1, Buffer::input}, .end = {(r + by) % 3, 0}});
      p.steps.push_back({.op = Op::recv, .to = {by - 1, 1, Buffer::scratch}, .end = {(r + by) % 3, 0}});
    }
    Step sum{.op = Op::reduce, .to = {0, 1, Buffer::output}, .from = {0, 1, Buffer::input}};
    p.set_further(sum, std::vector<Slice>{{0, 1, Buffer::scratch}, {1, 1, Buffer::scratch}});
    p.set_after(sum, std::vector<std::int32_t>{1, 3});
    p.steps.push_back(sum);
  }
  const Report report = verify(t);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_FALSE(report.same_bits_everywhere);
}

}  // namespace
}  // namespace trellis::schedule
