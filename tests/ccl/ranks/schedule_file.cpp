// Schedules from files: any that is proved runs, in whichever order it is written, and gives the right bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/algorithms/algorithm.h"
#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/text.h"
#include "schedule/proof/verify.h"
#include "tests/ccl/ranks/cases.h"
#include "tests/ccl/ranks/run.h"
#include "tests/folder.h"
#include "tests/schedule/against_order.h"
#include "tests/schedule/scramble.h"

namespace trellis::ccl {
namespace {

using schedule::Schedule;

// Runs a call by a schedule file that the configuration names. in_place: whether the call is.
std::string run_file(const std::string& text, Call call, bool in_place, Config config = {}) {
  const Schedule s = schedule::parse(text);
  const Folder folder;
  const std::string file = "file:" + folder.put("given.txt", text).string();
  call.operation.collective = s.task.operation.collective, call.operation.root = s.task.operation.root;
  Case c{.call = call, .algorithm = file, .in_place = in_place};
  config.algorithm = file;
  config.timeout = std::chrono::seconds(20);
  return run_ranks(
      "loopback", s.ranks(), [&](Communicator& comm) { run_case(comm, c, 3); }, config);
}

// A schedule that sends memory which nobody has written; what is received is not used.
constexpr std::string_view sends_rubbish = R"(trellis schedule 1
collective all_reduce
ranks 2
pieces 1
channels 1
rank 0 scratch 1 like 0
0 send in[0] to 1 tag 0
1 recv_reduce out[0] = in[0] from 1 tag 0
2 send tmp[0] to 1 tag 1
rank 1 scratch 1 like 0
0 send in[0] to 0 tag 0
1 recv_reduce out[0] = in[0] from 0 tag 0
2 recv tmp[0] from 0 tag 1
)";

TEST(ScheduleFile, WhatIsProvedRuns) {
  for (const std::string_view text : {schedule::against_tags, schedule::against_the_list, sends_rubbish})
    for (const std::size_t count : {0, 1, 2, 1001, 100'000})
      EXPECT_EQ(run_file(std::string(text), {.count = count}, false), "") << text << count;
}

TEST(ScheduleFile, WithRandomBitsToo) {
  for (const std::string_view text : {schedule::against_tags, schedule::against_the_list, sends_rubbish}) {
    EXPECT_EQ(run_file(std::string(text), {.count = 100}, false,
                       {.rounding = kernels::Rounding::stochastic, .wire = kernels::DType::bf16}),
              "")
        << text;
    EXPECT_EQ(run_file(std::string(text), {.count = 100, .type = kernels::DType::bf16}, false,
                       {.rounding = kernels::Rounding::stochastic}),
              "")
        << text;
  }
}

TEST(ScheduleFile, HoweverItIsWrittenDown) {
  std::mt19937 random(11);
  for (const char* algorithm : {"ring", "direct", "halving_doubling", "bruck", "double_tree", "kangaring"})
    for (const schedule::Collective collective : schedule::algorithm_named(algorithm).serves)
      for (const std::int32_t channels : {1, 6}) {
        using enum schedule::Collective;
        schedule::Request r{.operation = {.collective = collective}, .dims = {4}, .channels = channels};
        if (collective == send_recv || collective == permute || schedule::uneven(collective)) continue;
        if (!schedule::refusal(schedule::algorithm_named(algorithm), r).empty()) continue;
        const Schedule s = schedule::scrambled(schedule::make(algorithm, r), random);
        ASSERT_TRUE(schedule::verify(s).ok());
        const std::size_t count = collective == barrier ? 0 : 12 * static_cast<std::size_t>(s.task.pieces);
        EXPECT_EQ(run_file(print(s), {.count = count}, false), "")
            << algorithm << " " << schedule::name(collective) << " " << channels;
      }
}

// Only the root of a rooted collective has both buffers; a rank's block can be empty.
TEST(ScheduleFile, InPlace) {
  for (const auto collective : {Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter,
                                Collective::all_gather_v, Collective::reduce_scatter_v, Collective::all_reduce}) {
    for (const auto& [name, algorithm] : schedule::algorithms()) {
      for (const Rank root : {0, 2}) {
        if (root != 0 && !schedule::rooted(collective)) continue;
        schedule::Request r{.operation = {.collective = collective, .root = root, .in_place = true}, .dims = {3}};
        if (!std::ranges::count(algorithm.serves, collective) || !schedule::refusal(algorithm, r).empty()) continue;
        const Schedule s = schedule::make(algorithm, r);
        Call call{.count = 12 * static_cast<std::size_t>(s.task.pieces)};
        if (schedule::uneven(collective)) call = {.counts = {0, 7, 20}};
        EXPECT_EQ(run_file(print(s), call, true), "") << name << " " << schedule::name(collective);
      }
    }
  }
  const Schedule s = schedule::make("ring", {.operation = {.in_place = true}, .dims = {3}});
  EXPECT_EQ(run_file(print(s), {.count = 0}, true), "");
  EXPECT_NE(run_file(print(s), {.count = 9}, false).find("in place"), std::string::npos);
}

// MSCCL's files may claim to work in place and out of place, and may begin with blanks.
TEST(ScheduleFile, OfMscclThatClaimsBothRunsEitherWay) {
  std::string xml = "\n" + export_msccl(schedule::make("halving_doubling", {.dims = {2}}));
  const std::string_view claim = "inplace=\"0\"";
  xml.replace(xml.find(claim), claim.size(), "inplace=\"1\"");
  const Folder folder;
  Config config{.algorithm = "file:" + folder.put("both.xml", xml).string()};
  config.timeout = std::chrono::seconds(20);
  for (const bool in_place : {false, true}) {
    Case c{.call = {.count = 1000}, .algorithm = config.algorithm, .in_place = in_place};
    EXPECT_EQ(run_ranks(
                  "loopback", 2, [&](Communicator& comm) { run_case(comm, c, 3); }, config),
              "")
        << in_place;
  }
}

TEST(ScheduleFile, OfTheCallersOwnRunsAsItIsAskedFor) {
  const Schedule permute =
      schedule::make("direct", {.operation = {.collective = Collective::permute, .pairs = {{0, 1}}}, .dims = {2}});
  EXPECT_EQ(run_threads(2,
                        [&](Communicator& comm) {
                          const float in[2] = {1.F + static_cast<float>(comm.rank()), 5.F};
                          float out[2] = {-1.F, -1.F};
                          Call call{
                              .operation = {.collective = Collective::permute}, .input = in, .output = out, .count = 2};
                          call.operation.pairs = {{0, 1}};
                          comm.run(call, permute);
                          if (comm.rank() == 1 && out[0] != 1.F) throw std::runtime_error("nothing has arrived");
                          call.operation.pairs = {{1, 0}};
                          try {
                            comm.run(call, permute);
                          } catch (const std::invalid_argument& e) {
                            if (std::string(e.what()).find("pairs 0>1") != std::string::npos) return;
                            throw;
                          }
                          throw std::runtime_error("other pairs than the call's were served");
                        }),
            "");
}

// The factor is applied into memory of the library's own, so that the call is no longer in place.
TEST(ScheduleFile, OfTheCallersOwnInPlaceKeepsTheFactor) {
  for (const bool in_place : {true, false}) {
    const Schedule ring = schedule::make(
        "ring", {.operation = {.collective = Collective::all_reduce, .in_place = in_place}, .dims = {2}});
    const std::string said = run_threads(2, [&](Communicator& comm) {
      std::vector<float> data(6, static_cast<float>(comm.rank() + 1));
      const Call call{.operation = {.collective = Collective::all_reduce},
                      .input = data.data(),
                      .output = data.data(),
                      .count = data.size(),
                      .type = kernels::DType::f32,
                      .op = {.kind = kernels::Reduction::scaled_sum, .factor = 10}};
      comm.run(call, ring);
      for (const float x : data)
        if (x != 30) throw std::runtime_error(fmt::format("{} for 30", x));
    });
    EXPECT_EQ(said.find("can't serve") != std::string::npos, in_place) << said;
    EXPECT_EQ(said.empty(), !in_place) << said;
  }
}

// Ranks may pass different schedules if these send the same messages: here rank 0 works in place and the others do not.
TEST(ScheduleFile, OfTheCallersOwnIsInPlaceWhereTheCallIs) {
  const auto ring = [](bool in_place) {
    return schedule::make("ring",
                          {.operation = {.collective = Collective::all_gather, .in_place = in_place}, .dims = {3}});
  };
  const Schedule here = ring(true), apart = ring(false);
  EXPECT_EQ(run_threads(3,
                        [&](Communicator& comm) {
                          const bool in_place = comm.rank() == 0;
                          const float own = 1.F + static_cast<float>(comm.rank());
                          std::vector<float> all(3, own);
                          comm.run({.operation = {.collective = Collective::all_gather},
                                    .input = in_place ? all.data() : &own,
                                    .output = all.data(),
                                    .count = 1},
                                   in_place ? here : apart);
                          if (all != std::vector<float>{1, 2, 3}) throw std::runtime_error("gathered wrongly");
                        }),
            "");
}

// The ranks' lists queue the messages of rank 0 in different orders, which a receiver can't tell by their sizes.
TEST(ScheduleFile, OfTheCallersOwnInAnotherOrderIsNoWrongResult) {
  const auto listed = [](bool swapped) {
    std::string rank_0 = "2 send in[4] to 1 tag 0 after 1\n3 send in[5] to 1 tag 1 after 1\n";
    if (swapped) rank_0 = "2 send in[5] to 1 tag 1 after 1\n3 send in[4] to 1 tag 0 after 1\n";
    return schedule::parse(
        "trellis schedule 1\ncollective all_to_all\nranks 2\npieces 3\nalgorithm mine\nchannels 1\nrank 0 scratch 0\n"
        "0 send in[3] to 1 tag 2\n1 recv out[3] from 1 tag 0\n" +
        rank_0 +
        "4 recv out[4] from 1 tag 1\n5 recv out[5] from 1 tag 2\n6 copy out[0..2] = in[0..2]\nrank 1 scratch 0\n"
        "0 recv out[0] from 0 tag 2\n1 send in[0] to 0 tag 0 after 0\n2 recv out[1] from 0 tag 0\n"
        "3 recv out[2] from 0 tag 1\n4 send in[1] to 0 tag 1\n5 send in[2] to 0 tag 2\n6 copy out[3..5] = in[3..5]\n");
  };
  const std::string said = run_threads(2, [&](Communicator& comm) {
    const std::vector<float> in{0, 1, 2, 3, 4, 5};
    std::vector<float> out(6);
    comm.run(
        {.operation = {.collective = Collective::all_to_all}, .input = in.data(), .output = out.data(), .count = 3},
        listed(comm.rank() == 1));
    if (comm.rank() == 1 && out != std::vector<float>{3, 4, 5, 3, 4, 5}) throw std::runtime_error("wrong values");
  });
  EXPECT_NE(said.find("does not expect"), std::string::npos) << said;
  EXPECT_EQ(said.find("wrong values"), std::string::npos) << said;
}

TEST(ScheduleFile, TheAlgorithmOfAScaledSumIsTheOneThatRuns) {
  for (const bool in_place : {true, false}) {
    const Folder folder;
    const Schedule ring = schedule::make("ring", {.operation = {.in_place = in_place}, .dims = {2}});
    const std::string file = "file:" + folder.put("given.txt", print(ring)).string();
    std::array<std::string, 2> told, ran;
    run_threads(2,
                [&](Communicator& comm) {
                  std::vector<float> data(6, 1);
                  const Call call{.operation = {.collective = Collective::all_reduce},
                                  .input = data.data(),
                                  .output = data.data(),
                                  .count = data.size(),
                                  .op = {.kind = kernels::Reduction::scaled_sum, .factor = 10}};
                  const auto why = [&](const auto& attempt) -> std::string {
                    try {
                      attempt();
                    } catch (const std::invalid_argument& e) {
                      return e.what();
                    }
                    return "";
                  };
                  const auto rank = static_cast<std::size_t>(comm.rank());
                  told[rank] = why([&] { EXPECT_EQ(comm.algorithm(call), file); });
                  ran[rank] = why([&] { comm.run(call); });
                },
                {.algorithm = file});
    EXPECT_EQ(told, ran);
    EXPECT_EQ(told[0].empty(), !in_place) << told[0];
  }
}

TEST(ScheduleFile, APermuteWithoutPairsWritesNothing) {
  EXPECT_EQ(run_threads(
                2,
                [](Communicator& comm) {
                  const float in = 5.F + static_cast<float>(comm.rank());
                  float out = -1.F;
                  Call call{.operation = {.collective = Collective::permute}, .input = &in, .output = &out, .count = 1};
                  const auto expect = [&](std::vector<schedule::Pair> pairs, float wanted) {
                    out = -1.F;
                    call.operation.pairs = std::move(pairs);
                    comm.run(call);
                    if (out != wanted) throw std::runtime_error(fmt::format("{} for {}", out, wanted));
                  };
                  const float other = 6.F - static_cast<float>(comm.rank());
                  expect({{0, 1}, {1, 0}}, other);
                  expect({}, -1.F);
                  expect({{0, 1}}, comm.rank() == 1 ? other : -1.F);
                  expect({}, -1.F);
                }),
            "");
}

}  // namespace
}  // namespace trellis::ccl
