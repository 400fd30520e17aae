#include "schedule/formats/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "schedule/algorithms/algorithm.h"
#include "schedule/proof/verify.h"
#include "tests/why.h"

namespace trellis::schedule {
namespace {

void expect_equal(const Schedule& a, const Schedule& b) {
  EXPECT_EQ(a.task, b.task);
  EXPECT_EQ(a.algorithm, b.algorithm);
  EXPECT_EQ(a.channels, b.channels);
  ASSERT_EQ(a.programs.size(), b.programs.size());
  for (std::size_t r = 0; r < a.programs.size(); ++r) EXPECT_TRUE(same(a.programs[r], b.programs[r])) << "rank " << r;
}

std::string complaint(const std::string& text) {
  return why([&] { parse(text); });
}

constexpr std::string_view two_ranks = R"(trellis schedule 1
collective all_reduce
ranks 2
pieces 2
algorithm ring
channels 1

rank 0 scratch 0
0 send in[1] to 1 tag 0
1 recv_reduce out[0] = in[0] from 1 tag 0
2 send out[0] to 1 tag 1 after 1
3 recv out[1] from 1 tag 1

rank 1 scratch 0
0 send in[0] to 0 tag 0
1 recv_reduce out[1] = in[1] from 0 tag 0
2 send out[1] to 0 tag 1 after 1
3 recv out[0] from 0 tag 1
)";

TEST(Text, ReadsAsItIsShown) {
  EXPECT_EQ(print(parse(two_ranks)), two_ranks);
  EXPECT_TRUE(verify(parse(two_ranks)).ok()) << verify(parse(two_ranks)).text();
}

TEST(Text, EveryAlgorithmComesBackTheSame) {
  for (const auto& [name, algorithm] : algorithms())
    for (const Collective collective : algorithm.serves)
      for (const Rank ranks : {1, 2, 3, 4, 8})
        for (const bool in_place : {false, true})
          for (const std::int32_t lanes : {1, 2}) {
            const bool one_to_one = collective == Collective::send_recv;
            Request request{.operation = {.collective = collective,
                                          .root = rooted(collective) || one_to_one ? ranks - 1 : 0,
                                          .peer = one_to_one ? ranks - 1 : 0},
                            .dims = {ranks}};
            request.operation.in_place = in_place;
            request.channels = request.segments = lanes;
            if (collective == Collective::permute)
              for (Rank r = 0; r < ranks; ++r) request.operation.pairs.push_back({r, (r + 1) % ranks});
            if (!refusal(algorithm, request).empty()) continue;
            const Schedule schedule = make(algorithm, request);
            SCOPED_TRACE(fmt::format("{} {} {}", name, schedule::name(collective), ranks));
            expect_equal(parse(print(schedule)), schedule);
          }
}

Schedule one_of_each() {
  Schedule s{.task = {.operation = {.collective = Collective::permute, .pairs = {{0, 2}, {2, 1}}}, .ranks = 3},
             .algorithm = " odd\tname \\ x",
             .channels = 7,
             .programs = std::vector<Program>(3)};
  s.task.operation.in_place = s.task.even = true;
  s.task.pieces = 2'000'000'000;
  Program& p = s.programs[1];
  p.scratch = 2'147'483'647;
  p.scratch_sizes = {{1, 0}, {2, 5}, {2'147'483'644, 1}};
  const Slice a{0, 3, Buffer::input}, b{7, 1, Buffer::output}, c{2'147'483'646, 1, Buffer::scratch};
  const auto add = [&](Step step, std::vector<Slice> further, std::vector<std::int32_t> after) {
    p.set_after(step, after);
    p.set_further(step, further);
    p.steps.push_back(step);
  };
  add({.op = Op::send, .channel = 6, .from = a, .end = {2, 0}, .second = {0, 2'147'483'647}}, {}, {});
  add({.op = Op::recv, .to = b, .end = {0, 5}}, {}, {0});
  add({.op = Op::recv_reduce, .channel = 255, .to = b, .from = c, .end = {0, 6}}, {}, {1, 0});
  add({.op = Op::copy, .to = c, .from = b}, {a}, {});
  add({.op = Op::reduce, .to = c, .from = b}, {a, b, c}, {0, 1, 2, 3});
  return s;
}

TEST(Text, EveryKindOfStepAndEveryPropertyComesBack) {
  const Schedule schedule = one_of_each();
  const std::string text = print(schedule);
  expect_equal(parse(text), schedule);
  EXPECT_NE(text.find("pairs 0>2 2>1\n"), std::string::npos);
  EXPECT_NE(text.find("rank 1 scratch 2147483647 like 0 5..6 1..2147483644\n"), std::string::npos);
  EXPECT_NE(text.find("0 send in[0..2] to 2 tag 0 and 0 tag 2147483647 channel 6\n"), std::string::npos);
  EXPECT_NE(text.find("4 reduce tmp[2147483646] = out[7] + in[0..2] + out[7] + tmp[2147483646] after 0 1 2 3\n"),
            std::string::npos);
}

TEST(Text, BothEndsOfASendComeBack) {
  const Task task{.operation = {.collective = Collective::send_recv, .root = 1, .peer = 2}, .ranks = 3};
  const Schedule schedule{.task = task, .algorithm = "none", .programs = std::vector<Program>(3)};
  EXPECT_NE(print(schedule).find("root 1\npeer 2\n"), std::string::npos);
  expect_equal(parse(print(schedule)), schedule);
}

TEST(Text, AFaultOfTheHeadHasItsLine) {
  const auto head = [](std::string_view lines) {
    return complaint(
        fmt::format("trellis schedule 1\n{}pieces 1\nchannels 1\nrank 0 scratch 0\nrank 1 scratch 0\n", lines));
  };
  EXPECT_EQ(head("collective broadcast\nranks 2\nroot 2\n"), "line 4: root 2 is not a rank: expected 0 to 1");
  EXPECT_EQ(head("collective send_recv\nranks 2\n\npeer 9\n"), "line 5: peer 9 is not a rank: expected 0 to 1");
  EXPECT_EQ(head("peer 1\ncollective all_gather\nranks 2\n"), "line 2: peer 1: all_gather has none");
  EXPECT_EQ(head("collective permute\nranks 2\npairs 0>1 0>1\n"), "line 4: permute source 0 is given twice");
  EXPECT_EQ(head("ranks 2\ncollective barrier\npairs 0>1\n"), "line 4: barrier takes no source-target pairs");
  EXPECT_EQ(head("even\ncollective all_gather_v\nranks 2\n"),
            "line 2: all_gather_v has blocks of all sizes: they can't be even");
  EXPECT_NE(head("in_place\nranks 2\ncollective all_to_all_v\n").find("line 2: all_to_all_v can't be in place"),
            std::string::npos);
}

TEST(Text, OneRankIsShownAlone) {
  const Schedule schedule = parse(two_ranks);
  EXPECT_EQ(print(schedule, 1), two_ranks.substr(two_ranks.find("rank 1")));
  EXPECT_THROW(print(schedule, 2), std::invalid_argument);
  EXPECT_THROW(print(schedule, -1), std::invalid_argument);
}

TEST(Text, CommentsBlanksAndForeignLineEndsSayNothing) {
  std::string text = "# from a file\n\n";
  for (const char c : two_ranks) text += c == '\n' ? std::string(" \r\n") : std::string(1, c);
  EXPECT_EQ(print(parse(text)), two_ranks);
}

TEST(Text, ComplaintsNameThePlaceWhatIsThereAndWhatWasExpected) {
  const auto with = [](std::string_view old, std::string_view now) {
    std::string text(two_ranks);
    return text.replace(text.find(old), old.size(), now);
  };
  EXPECT_EQ(complaint(""), "line 1: the line ends: expected 'trellis schedule 1'");
  EXPECT_EQ(complaint("\x80\xff"), "line 1: found '\x80\xff': expected 'trellis schedule 1'");
  EXPECT_EQ(complaint(with("schedule 1", "schedule 2")),
            "line 1: found 'trellis schedule 2': expected 'trellis schedule 1'");
  EXPECT_EQ(complaint(with("all_reduce", "all_deduce")),
            "line 2: found 'all_deduce': expected the name of a collective, such as all_reduce");
  EXPECT_EQ(complaint(with("ranks 2", "ranks 0")), "line 3: found '0': expected how many ranks, 1 to 2147483647");
  EXPECT_EQ(complaint(with("pieces 2", "pieces -2")),
            "line 4: found '-2': expected chunks in a block, 1 to 2147483647");
  EXPECT_EQ(complaint(with("pieces 2", "ranks 2")), "line 4: found 'ranks 2': expected 'ranks' only once");
  EXPECT_EQ(complaint(with("pieces 2\n", "")), "line 18: the line ends: expected a line 'pieces ...'");
  EXPECT_EQ(complaint(with("channels 1", "channels 257")), "line 6: found '257': expected how many channels, 1 to 256");
  EXPECT_EQ(complaint(with("rank 1", "rank 2")), "line 14: found '2 scratch 0': expected rank 1, the next one,");
  EXPECT_EQ(complaint(with("1 recv_reduce", "2 recv_reduce")),
            "line 10: found '2 recv_reduce out[0] = in[0] from 1 tag 0': expected step 1, the next one,");
  EXPECT_EQ(complaint(with("send", "mail")),
            "line 9: found 'mail in[1] to 1 tag 0': expected send, recv, recv_reduce, copy or reduce");
  EXPECT_EQ(complaint(with("in[1]", "up[1]")), "line 9: found 'up[1] to 1 tag 0': expected in[..], out[..] or tmp[..]");
  EXPECT_EQ(complaint(with("in[1]", "in[3..2]")),
            "line 9: found '2] to 1 tag 0': expected the last chunk, 3 to 2147483647");
  EXPECT_EQ(complaint(with("in[1]", "in[99999999999]")),
            "line 9: found '99999999999] to 1 tag 0': expected a chunk number, 0 to 2147483647");
  EXPECT_EQ(complaint(with("tag 0", "tag 0 after")),
            "line 9: the line ends: expected an earlier step, 0 to 2147483647");
  EXPECT_EQ(complaint(with("tag 0", "tag 0 now")), "line 9: found 'now': expected the end of the line");
  EXPECT_EQ(complaint(with("ring", "ri\\ng")),
            "line 5: found '\\\\ng': expected \\\\ or \\x and two hexadecimal digits");
}

TEST(Text, ClaimsAreNotBelievedWithoutTheirLines) {
  EXPECT_EQ(
      complaint("trellis schedule 1\ncollective barrier\nranks 2000000000\npieces 1\nchannels 1\nrank 0 scratch 0\n"),
      "line 7: the line ends: expected 'rank 1': 2000000000 ranks are announced");
  const Schedule huge = parse(
      "trellis schedule 1\ncollective all_reduce\nranks 1\npieces 2000000000\nchannels 1\nrank 0 scratch 2147483647\n");
  EXPECT_EQ(verify(huge).text(), "6147483647 chunks of memory are more than the 67108864 that a proof may take");
  Schedule rooted = one_of_each();
  rooted.task.operation.root = 1;
  EXPECT_THROW(verify(rooted), std::invalid_argument);  // a permute has no root
}

TEST(Text, DamageIsRefusedOrHarmless) {
  std::mt19937 random(1);
  constexpr std::string_view bytes = "0123456789 \n[].>+=abcdefghijklmnopqrstuvwxyz_#\\";
  for (int i = 0; i < 20'000; ++i) {
    std::string text(two_ranks);
    for (int changes = 1 + static_cast<int>(random() % 3); changes-- > 0;) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 4);
      else
        text[at] = bytes[random() % bytes.size()];
    }
    try {
      const Schedule schedule = parse(text);
      expect_equal(parse(print(schedule)), schedule);
      verify(schedule, {.cells = 1 << 20, .work = 1 << 22});
    } catch (const std::invalid_argument&) {
    }
  }
}

}  // namespace
}  // namespace trellis::schedule
