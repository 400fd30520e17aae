// Sends, receives, groups, streams.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "ccl/group.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using kernels::DType;

class PointToPoint : public testing::TestWithParam<std::string> {};

std::vector<std::int32_t> numbers(std::size_t count, std::int32_t first) {
  std::vector<std::int32_t> v(count);
  std::iota(v.begin(), v.end(), first);
  return v;
}

void expect(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

TEST_P(PointToPoint, MessagesBetweenTwoComeInOrder) {
  EXPECT_EQ(run_ranks(GetParam(), 2,
                      [](Communicator& c) {
                        for (std::size_t count : {1, 7, 12, 13, 100, 5'000, 300'000, 0, 3}) {
                          auto mine = numbers(count, static_cast<std::int32_t>(count));
                          std::vector<std::int32_t> got(count, -1);
                          if (c.rank() == 0) {
                            c.send(mine.data(), count, DType::i32, 1);
                            c.recv(got.data(), count, DType::i32, 1);
                          } else {
                            c.recv(got.data(), count, DType::i32, 0);
                            c.send(got.data(), count, DType::i32, 0);
                          }
                          expect(got == mine, "a message came back otherwise");
                        }
                      }),
            "");
}

// Makes more different calls than plans are kept for, each several times and in turn.
TEST_P(PointToPoint, CallsWithCountsOrPairsOfTheirOwnKeepApart) {
  EXPECT_EQ(run_ranks(GetParam(), 2,
                      [](Communicator& c) {
                        const auto mine = numbers(100, 1000 * c.rank());
                        for (std::size_t round = 0; round < 3; ++round)
                          for (std::size_t n = 0; n < 12; ++n) {
                            std::vector<std::int32_t> all(n + 5, -1), got(7, -1);
                            c.run({.operation = {.collective = Collective::all_gather_v},
                                   .input = mine.data(),
                                   .output = all.data(),
                                   .type = DType::i32,
                                   .counts = {n, 5}});
                            for (std::size_t i = 0; i < all.size(); ++i)
                              expect(all[i] == static_cast<std::int32_t>(i < n ? i : 1000 + i - n), "wrong data");
                            const bool crossed = n % 2 == 0;
                            c.run({.operation = {.collective = Collective::permute,
                                                 .pairs = crossed ? std::vector<schedule::Pair>{{0, 1}, {1, 0}}
                                                                  : std::vector<schedule::Pair>{{0, 0}, {1, 1}}},
                                   .input = mine.data(),
                                   .output = got.data(),
                                   .count = 7,
                                   .type = DType::i32});
                            const Rank from = crossed ? 1 - c.rank() : c.rank();
                            expect(got == numbers(7, 1000 * from), "it came from somewhere else");
                          }
                      }),
            "");
}

// Every rank first sends to all others, then receives: without a group, messages of this size would deadlock.
TEST_P(PointToPoint, AGroupOfLargeSendsAndReceivesDoesNotLock) {
  EXPECT_EQ(run_ranks(GetParam(), 4,
                      [](Communicator& c) {
                        const std::size_t count = 200'000;
                        const auto mine = numbers(count, c.rank() * 1000);
                        std::vector<std::vector<std::int32_t>> got(4, std::vector<std::int32_t>(count));
                        Group group;
                        for (Rank r = 0; r < 4; ++r) c.send(mine.data(), count, DType::i32, r);
                        for (Rank r = 3; r >= 0; --r)
                          c.recv(got[static_cast<std::size_t>(r)].data(), count, DType::i32, r);
                        group.end();
                        for (Rank r = 0; r < 4; ++r)
                          expect(got[static_cast<std::size_t>(r)] == numbers(count, r * 1000), "wrong data");
                      }),
            "");
}

TEST_P(PointToPoint, AGroupMixesCollectivesSendsAndSeveralMessagesToOnePeer) {
  EXPECT_EQ(run_ranks(GetParam(), 3,
                      [](Communicator& c) {
                        const Rank next = (c.rank() + 1) % 3, before = (c.rank() + 2) % 3;
                        std::int32_t sum = c.rank() + 1, a = c.rank() * 10, b = a + 1, got_a = -1, got_b = -1;
                        std::int32_t most = c.rank();
                        Group group;
                        c.all_reduce(&sum, &sum, 1, DType::i32);
                        c.send(&a, 1, DType::i32, next);
                        c.recv(&got_a, 1, DType::i32, before);
                        c.all_reduce(&most, &most, 1, DType::i32, {kernels::Reduction::max});
                        c.send(&b, 1, DType::i32, next);
                        c.recv(&got_b, 1, DType::i32, before);
                        expect(sum == c.rank() + 1, "a group began before its end");
                        group.end();
                        expect(sum == 6 && most == 2, "a collective of the group is wrong");
                        expect(got_a == before * 10 && got_b == before * 10 + 1, "messages of the group are wrong");
                      }),
            "");
}

TEST_P(PointToPoint, SendsOfAnotherSizeThanReceivedAreAMismatch) {
  const std::string said = run_ranks(GetParam(), 2, [](Communicator& c) {
    std::int32_t data[4] = {};
    if (c.rank() == 0)
      c.send(data, 4, DType::i32, 1);
    else
      c.recv(data, 2, DType::i32, 0);
  });
  EXPECT_NE(said.find("rank 1: rank 0 sends 16 bytes where rank 1 receives 8"), std::string::npos) << said;
}

TEST_P(PointToPoint, SendsOfAnotherTypeThanReceivedAreAMismatch) {
  for (const std::size_t count : {std::size_t{4}, std::size_t{400'000}}) {
    const std::string said = run_ranks(GetParam(), 2, [&](Communicator& c) {
      std::vector<std::int32_t> data(count);
      if (c.rank() == 0)
        c.send(data.data(), count, DType::f32, 1);
      else
        c.recv(data.data(), count, DType::i32, 0);
    });
    EXPECT_NE(said.find("rank 1: rank 0 sends f32 where rank 1 receives i32"), std::string::npos) << said;
  }
  EXPECT_NE(run_ranks(GetParam(), 1,
                      [&](Communicator& c) {
                        std::int32_t data[4] = {};
                        Group group;
                        c.send(data, 4, DType::f32, 0);
                        c.recv(data, 4, DType::i32, 0);
                        group.end();
                      })
                .find("rank 0 sends itself 4 f32 where it receives 4 i32"),
            std::string::npos);
}

TEST_P(PointToPoint, StreamsRunBesideTheCaller) {
  EXPECT_EQ(run_ranks(GetParam(), 2,
                      [](Communicator& c) {
                        const auto stream = c.device().stream(), other = c.device().stream();
                        const auto event = c.device().event();
                        std::vector<float> data(10'000, 1.0F), sum(10'000);
                        for (int i = 0; i < 20; ++i) {
                          c.all_reduce(data.data(), sum.data(), data.size(), DType::f32, {}, stream.get());
                          event->record(stream.get());
                          event->wait(other.get());
                          c.all_reduce(sum.data(), data.data(), data.size(), DType::f32, {kernels::Reduction::avg},
                                       other.get());
                          event->record(other.get());
                          event->wait(stream.get());
                        }
                        stream->synchronize();
                        other->synchronize();
                        expect(data[9'999] == 1'048'576.0F, "twenty doublings");
                        c.all_reduce(data.data(), data.data(), 1, DType::f32);  // in this thread, after all of them
                        expect(data[0] == 2'097'152.0F, "one more");
                      }),
            "");
}

// One thread is two ranks: neither rank's call may wait for the other's.
TEST(Groups, SeveralCommunicatorsOfOneThread) {
  const auto store = memory_store();
  std::unique_ptr<Communicator> all[2];
  std::thread other([&] { all[1] = Communicator::create(store, 1, 2, {.transport = "loopback"}); });
  all[0] = Communicator::create(store, 0, 2, {.transport = "loopback"});
  other.join();
  std::vector<float> data[2] = {std::vector<float>(100'000, 1.0F), std::vector<float>(100'000, 2.0F)};
  for (int i = 0; i < 3; ++i) {
    Group group;
    for (int r = 0; r < 2; ++r) all[r]->all_reduce(data[r].data(), data[r].data(), 100'000, DType::f32);
    group.end();
  }
  EXPECT_EQ(data[0], std::vector<float>(100'000, 12.0F));
  EXPECT_EQ(data[1], data[0]);
}

TEST(Groups, OneThatIsNotEndedForgets) {
  const auto alone = Communicator::create(memory_store(), 0, 1, {.transport = "loopback"});
  int a = 1, b = 0;
  {
    const Group group;
    alone->all_reduce(&a, &b, 1, DType::i32);
  }
  EXPECT_EQ(b, 0);
  EXPECT_FALSE(Group::open());
  alone->all_reduce(&a, &b, 1, DType::i32);
  EXPECT_EQ(b, 1);
}

INSTANTIATE_TEST_SUITE_P(Transports, PointToPoint, every_transport(), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace trellis::ccl
