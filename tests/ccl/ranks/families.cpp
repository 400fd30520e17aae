// Ranks that wait in communicators which were divided from one another: the rank at fault is named in each.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <optional>

#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

class Families : public testing::TestWithParam<std::string> {
 protected:
  // Stops one rank once its family is made, and returns how the others end. None of them leaves before all have found
  // who is at fault: a process that ends while others wait for it would rightly be named.
  static std::string with_stopped(Rank ranks, Rank stopped, const RankFunction& others, const RankFunction& divide) {
    const Config config{.timeout = long_deadline, .transport = GetParam()};
    std::atomic<int>& found = seen_by_all();
    return run_processes(
        ranks,
        [&](Communicator& c) {
          divide(c);
          c.barrier();
          if (c.rank() == stopped) raise(SIGSTOP);
          others(c);
          ++found;
          await(found, ranks - 1);
        },
        config);
  }
};

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

PeerLost loss_in(const std::function<void()>& work) {
  try {
    work();
  } catch (const PeerLost& lost) {
    return lost;
  }
  throw std::runtime_error("nothing failed");
}

void expect_named(const PeerLost& lost, Rank rank) {
  expect(lost.rank == rank, fmt::format("rank {} is named, for {}: {}", lost.rank, rank, lost.what()));
}

TEST_P(Families, WhoIsStoppedIsNamedAndNotWhoWaitsForItInAChild) {
  std::unique_ptr<Communicator> child;
  const std::string said = with_stopped(
      3, 2,
      [&](Communicator& c) {
        if (c.rank() == 1) expect_named(loss_in([&] { child->barrier(); }), 1);  // its number there
        expect_named(loss_in([&] { c.barrier(); }), 2);
      },
      [&](Communicator& c) { child = c.split(c.rank() == 0 ? 0 : 1, c.rank()); });
  EXPECT_EQ(said, "rank 2: signal 9\n");
}

// Rank 0 waits in the first communicator for 1, which waits in a child for 2, which waits in the child's child for 3.
TEST_P(Families, TheChainLeadsThroughChildrenOfChildren) {
  std::unique_ptr<Communicator> child, grandchild;
  const std::string said = with_stopped(
      4, 3,
      [&](Communicator& c) {
        if (c.rank() == 2) expect_named(loss_in([&] { grandchild->barrier(); }), 0);
        if (c.rank() == 1) expect_named(loss_in([&] { child->barrier(); }), 2);
        expect_named(loss_in([&] { c.barrier(); }), 3);
      },
      [&](Communicator& c) {
        child = c.split(c.rank() == 0 ? 0 : 1, c.rank());
        grandchild = child->split(c.rank() <= 1 ? 0 : 1, -c.rank());
      });
  EXPECT_EQ(said, "rank 3: signal 9\n");
}

// Tensor parallelism by pairs, data parallelism across them: rank 2 waits for 0, which waits for 1, and 1 shares only
// the first communicator with 2.
TEST_P(Families, WhoIsNotInTheCommunicatorIsToldApart) {
  std::unique_ptr<Communicator> tensor, data;
  const std::string said = with_stopped(
      4, 1,
      [&](Communicator& c) {
        if (c.rank() == 0) expect_named(loss_in([&] { tensor->barrier(); }), 1);
        if (c.rank() == 2) {
          const PeerLost lost = loss_in([&] { data->barrier(); });
          expect_named(lost, -1);
          // Either text is right, as rank 2 may see or not that rank 0 still waits in `tensor`.
          const std::string why = lost.what();
          expect(why.find("in another communicator, for rank 1") != why.npos ||
                     why.find("rank 1 of the first communicator (not in this one)") != why.npos,
                 why);
        }
        if (c.rank() == 3) expect_named(loss_in([&] { data->barrier(); }), 0);
        expect_named(loss_in([&] { c.barrier(); }), 1);
      },
      [&](Communicator& c) {
        tensor = c.split(c.rank() / 2, c.rank());
        data = c.split(c.rank() % 2, c.rank());
      });
  EXPECT_EQ(said, "rank 1: signal 9\n");
}

TEST_P(Families, WhoWaitsInAChildsSplitIsNotBlamed) {
  std::unique_ptr<Communicator> child;
  const std::string said = with_stopped(
      3, 2,
      [&](Communicator& c) {
        if (c.rank() == 1) expect_named(loss_in([&] { child->split(0, 0); }), 1);
        expect_named(loss_in([&] { c.split(0, 0); }), 2);
      },
      [&](Communicator& c) { child = c.split(c.rank() == 0 ? 0 : 1, c.rank()); });
  EXPECT_EQ(said, "rank 2: signal 9\n");
}

INSTANTIATE_TEST_SUITE_P(Transports, Families, testing::ValuesIn(between_processes()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace trellis::ccl
