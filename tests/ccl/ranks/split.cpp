// Communicators that are split from others or shrunk out of them.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using kernels::DType;

class Split : public testing::TestWithParam<std::string> {};

void expect(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

std::int32_t sum_over(Communicator& c, std::int32_t mine) {
  c.all_reduce(&mine, &mine, 1, DType::i32);
  return mine;
}

TEST_P(Split, ByColorAndKey) {
  EXPECT_EQ(run_ranks(GetParam(), 5,
                      [](Communicator& c) {
                        // Ranks 0, 2, 4 in reverse order; ranks 1 and 3 in order.
                        const bool even = c.rank() % 2 == 0;
                        const auto half = c.split(even ? 0 : 7, even ? -c.rank() : c.rank());
                        expect(half->ranks() == (even ? 3 : 2), "how many");
                        expect(half->rank() == (even ? 2 - c.rank() / 2 : c.rank() / 2), "which");
                        expect(sum_over(*half, c.rank()) == (even ? 6 : 4), "the half's sum");
                        expect(sum_over(c, c.rank()) == 10, "the whole's sum, meanwhile");
                        const auto again = half->split(0, 0);
                        expect(sum_over(*again, 1) == half->ranks(), "a split of a split");
                      }),
            "");
}

TEST_P(Split, WithoutAColorThereIsNone) {
  EXPECT_EQ(run_ranks(GetParam(), 4,
                      [](Communicator& c) {
                        for (int round = 0; round < 3; ++round) {
                          const auto part = c.split(c.rank() == round ? std::nullopt : std::optional(1), 0);
                          expect((part == nullptr) == (c.rank() == round), "who has none");
                          if (part) expect(sum_over(*part, 1) == 3, "the others' sum");
                        }
                      }),
            "");
}

TEST_P(Split, ShrinkWithoutAFailure) {
  EXPECT_EQ(run_ranks(GetParam(), 4,
                      [](Communicator& c) {
                        if (c.rank() == 1) return c.barrier();
                        c.barrier();
                        const auto rest = c.shrink(std::array{1});
                        expect(sum_over(*rest, c.rank()) == 5, "the rest's sum");
                      }),
            "");
}

// Ranks with the same list go on; the rank that they leave out gets an error.
TEST_P(Split, ShrinkByDifferentListsIsRefused) {
  EXPECT_EQ(run_ranks(GetParam(), 3,
                      [](Communicator& c) {
                        if (c.rank() == 1) {
                          try {
                            c.shrink(std::array{2});
                          } catch (const PeerLost& lost) {
                            return expect(lost.rank == 1, lost.what());
                          }
                          throw std::runtime_error("nothing failed");
                        }
                        const auto rest = c.shrink(std::array{1});
                        expect(sum_over(*rest, c.rank()) == 2, "the rest's sum");
                      },
                      {.timeout = long_deadline}),
            "");
}

// A store that keeps its notes when all have left, so that a late rank still finds them.
class KeptStore : public PrefixStore {
 public:
  KeptStore() : PrefixStore(memory_store(), "kept") {}
  void leave(std::string_view, std::int64_t) override {}
};

// Of two that join as rank 2, the second is refused, and the job goes on.
TEST_P(Split, ARankJoinsOnce) {
  const auto store = std::make_shared<KeptStore>();
  const Config config{.timeout = std::chrono::seconds(20), .transport = GetParam()};
  std::atomic<int> refused = 0, right = 0;
  std::vector<std::thread> threads;
  for (const Rank rank : {0, 1, 2, 2})
    threads.emplace_back([&, rank] {
      try {
        const auto c = Communicator::create(store, rank, 3, config);
        right += sum_over(*c, c->rank()) == 3;
      } catch (const std::invalid_argument&) {
        ++refused;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 3);
  EXPECT_EQ(refused, 1);
}

INSTANTIATE_TEST_SUITE_P(Transports, Split, every_transport(), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace trellis::ccl
