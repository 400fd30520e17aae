// Planted faults, and the messages with which verify reports them.
#include "schedule/proof/verify.h"

#include <gtest/gtest.h>

#include "schedule/algorithms/algorithm.h"
#include "schedule/formats/text.h"
#include "tests/schedule/against_order.h"

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
  Schedule s = make("direct", {.operation = {.collective = Collective::send_recv, .root = 0, .peer = 1}, .dims = {2}});
  // Each rank sends only after it has received.
  for (Rank r : {0, 1}) {
    Program& p = s.programs[r];
    p = {};
    p.scratch = 1;
    p.scratch_sizes = {{1, 0}};
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
  Schedule s = make("direct", {.operation = {.collective = Collective::reduce_scatter}, .dims = {3}});
  // All ranks send, add and keep the chunks of rank 0.
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
  EXPECT_THROW(check(Task{.operation = {.collective = static_cast<Collective>(collectives().size())}}),
               std::invalid_argument);

  Schedule local = make("direct", {.operation = {.collective = Collective::all_to_all}, .dims = {2}});
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
  // Rank 0 sends its chunk to rank 1 and receives it back in the same place. The data flow itself orders the steps.
  Schedule s;
  s.task = {.operation = {.collective = Collective::all_reduce, .in_place = true}, .ranks = 2, .even = true};
  s.programs.resize(2);
  const Slice chunk{0, 1, Buffer::output};
  Program& zero = s.programs[0];
  zero.steps = {{.op = Op::send, .from = chunk, .end = {1, 0}}, {.op = Op::recv, .to = chunk, .end = {1, 0}}};
  Program& one = s.programs[1];
  Step sum{.op = Op::recv_reduce, .to = chunk, .from = chunk, .end = {0, 0}};
  Step back{.op = Op::send, .from = chunk, .end = {0, 0}};
  one.set_after(back, std::vector<std::int32_t>{0});
  one.steps = {sum, back};
  // The receive may start before the send has ended. Only steps after the data's arrival are ordered, not the send's
  // end.
  EXPECT_TRUE(reports(s, 0, "races with step"));
  zero.set_after(zero.steps[1], std::vector<std::int32_t>{0});
  EXPECT_TRUE(verify(s).ok()) << verify(s).text();
}

TEST(Verify, RefusesASumThatHalfOverlapsWhatItReads) {
  // Right only if chunks are summed in ascending order, which is not guaranteed.
  Schedule s;
  s.task = {.operation = {.collective = Collective::reduce_scatter}, .ranks = 2};
  s.programs.resize(2);
  Program& zero = s.programs[0];
  zero.scratch = 3;
  zero.scratch_sizes = {{1, 0}, {1, 0}, {1, 0}};
  Step sum{.op = Op::reduce, .to = {0, 2, Buffer::scratch}, .from = {0, 2, Buffer::input}};
  zero.set_further(sum, std::vector<Slice>{{1, 2, Buffer::scratch}});
  zero.set_after(sum, std::vector<std::int32_t>{0});
  zero.steps = {{.op = Op::recv, .to = {1, 2, Buffer::scratch}, .end = {1, 0}}, sum};
  s.programs[1].steps = {{.op = Op::send, .from = {0, 2, Buffer::input}, .end = {0, 0}}};
  EXPECT_TRUE(reports(s, 0, "overlaps its own chunks half-way"));
}

TEST(Verify, RefusesTasksThatVoidTheProof) {
  EXPECT_THROW(check({.operation = {.collective = Collective::all_to_all_v, .in_place = true}, .ranks = 3}),
               std::invalid_argument);
  EXPECT_THROW(check({.operation = {.collective = Collective::all_gather_v}, .ranks = 3, .even = true}),
               std::invalid_argument);
  EXPECT_THROW(check({.operation = {.collective = Collective::all_reduce, .root = 1}, .ranks = 3}),
               std::invalid_argument);
  EXPECT_THROW(check({.operation = {.collective = Collective::all_reduce, .peer = 1}, .ranks = 3}),
               std::invalid_argument);
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
  t.task = {.operation = {.collective = Collective::all_reduce, .in_place = false}, .ranks = 3, .even = true};
  t.programs.resize(3);
  // Each rank adds what it gets from its neighbours to its own, starting with its own.
  for (Rank r = 0; r < 3; ++r) {
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

TEST(Verify, AcceptsOrderAgainstTheList) {
  EXPECT_TRUE(verify(parse(against_the_list)).ok()) << verify(parse(against_the_list)).text();
  // The same steps without the ordering wait.
  std::string text(against_the_list);
  text.erase(text.find("tmp[0] after 0") + 6, 8);
  EXPECT_TRUE(reports(parse(text), 0, "step 2 (copy tmp[0] = in[0]) races with step 1 (copy out[0] = tmp[0])"));
}

TEST(Verify, ManyChunksThatGoTogetherAreOne) {
  std::string text = R"(trellis schedule 1
collective all_reduce
ranks 2
pieces N
channels 1
rank 0 scratch 0
0 send in[0..M] to 1 tag 0
1 recv_reduce out[0..M] = in[0..M] from 1 tag 0
rank 1 scratch 0
0 send in[0..M] to 0 tag 0
1 recv_reduce out[0..M] = in[0..M] from 0 tag 0
)";
  const auto with = [&](std::int64_t pieces) {
    std::string filled;
    for (const char c : text)
      filled += c == 'N' ? std::to_string(pieces) : c == 'M' ? std::to_string(pieces - 1) : std::string(1, c);
    return parse(filled);
  };
  for (const std::int64_t pieces : {1, 12, 16'777'216, 2'000'000'000}) {
    Schedule s = with(pieces);
    EXPECT_TRUE(verify(s, {.cells = 64, .work = 1000}).ok()) << verify(s, {.cells = 64, .work = 1000}).text();
    // The fault names the chunk's original number.
    s.programs[1].steps[1].op = Op::recv;
    s.programs[1].steps[1].from = {};
    if (pieces > 100) continue;
    EXPECT_TRUE(reports(s, 1, "out[0] ends wrong"));
  }
}

TEST(Verify, WorkIsBounded) {
  const Schedule s = make("ring", {.dims = {16}});
  EXPECT_TRUE(verify(s).ok());
  for (const std::int64_t work : {10, 500, 2000, 5000}) {
    const Report report = verify(s, {.work = work});
    ASSERT_FALSE(report.ok()) << work;
    EXPECT_NE(report.text().find("takes more than the work of " + std::to_string(work) + " chunks"), std::string::npos)
        << report.text();
  }
}

// In each iteration, rank 0 fills scratch. It may do so only after rank 1 has answered the previous send from that
// scratch.
Schedule reuses(int times) {
  Schedule s;
  s.task = {.operation = {.collective = Collective::barrier}, .ranks = 2, .even = true};
  s.programs.resize(2);
  Program &zero = s.programs[0], &one = s.programs[1];
  zero.scratch = 2, one.scratch = 1;
  const Slice work{0, 1, Buffer::scratch}, answer{1, 1, Buffer::scratch}, in{0, 1, Buffer::input};
  const auto add = [](Program& p, Step step, std::vector<std::int32_t> after) {
    p.set_after(step, after);
    p.steps.push_back(step);
    return static_cast<std::int32_t>(p.steps.size()) - 1;
  };
  std::int32_t answered = -1, sent = -1, answered_there = -1;
  for (int i = 0; i < times; ++i) {
    const std::int32_t filled = add(zero, {.op = Op::copy, .to = work, .from = in},
                                    answered < 0 ? std::vector<std::int32_t>{} : std::vector{answered});
    // Reads `work`. The next fill waits for this read only through rank 1.
    const std::int32_t read = add(zero, {.op = Op::copy, .to = {0, 1, Buffer::output}, .from = work},
                                  sent < 0 ? std::vector{filled} : std::vector{filled, sent});
    sent = add(zero, {.op = Op::send, .from = in, .end = {1, i}}, {read});
    const std::int32_t got = add(one, {.op = Op::recv, .to = {0, 1, Buffer::scratch}, .end = {0, i}},
                                 answered_there < 0 ? std::vector<std::int32_t>{} : std::vector{answered_there});
    answered_there = add(one, {.op = Op::send, .from = {0, 1, Buffer::input}, .end = {0, i}}, {got});
    answered = add(zero, {.op = Op::recv, .to = answer, .end = {1, i}},
                   answered < 0 ? std::vector<std::int32_t>{} : std::vector{answered});
  }
  return s;
}

TEST(Verify, ReusesOrderedByWayOfAnotherRankAreFollowedOnlyAsFarAsTheyGo) {
  const auto fault = [](const Report& r) { return r.ok() ? std::string() : r.fault->text; };
  // The only fault left: rank 1's output does not wait for rank 0. There is no race, and the work per iteration is
  // constant.
  EXPECT_NE(fault(verify(reuses(1000), {.work = 200'000})).find("ends wrong"), std::string::npos)
      << fault(verify(reuses(1000), {.work = 200'000}));
}

TEST(Verify, FaultsAreShort) {
  Schedule s = make("direct", {.operation = {.collective = Collective::reduce, .root = 0}, .dims = {3}});
  Program& p = s.programs[0];
  Step& sum = find(s, 0, Op::reduce);
  p.set_further(sum, std::vector<Slice>(100'000, Slice{0, 1, Buffer::input}));
  const Report report = verify(s);
  ASSERT_FALSE(report.ok());
  EXPECT_LT(report.text().size(), 1000U) << report.text().size();
  EXPECT_NE(report.text().find("more)"), std::string::npos) << report.text();
}

TEST(Verify, SaysOnceHowOftenAChunkCounts) {
  Schedule s = make("direct", {.operation = {.collective = Collective::reduce, .root = 0}, .dims = {3}});
  Program& p = s.programs[0];
  Step& sum = find(s, 0, Op::reduce);
  std::vector<Slice> further(p.further(sum).begin(), p.further(sum).end());
  further.insert(further.end(), {sum.from, sum.from});
  p.set_further(sum, further);
  const std::string text = verify(s).text();
  EXPECT_NE(text.find("counts 3 times"), std::string::npos) << text;
  EXPECT_EQ(text.find("counts"), text.rfind("counts")) << text;
}

}  // namespace
}  // namespace trellis::schedule
