// Splits and shrinks in which ranks come late, stop, die, and try again.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/ccl/ranks/run.h"

namespace {

// Where this process stops itself: in system calls that creating a communicator makes. The functions below replace the
// C library's.
enum class Stop { nowhere, before_memory, before_joining };
std::atomic<Stop> stop = Stop::nowhere;
std::atomic<bool> only_pauses = false;  // it goes on by itself after a while

void stop_if(Stop here) {
  if (stop != here) return;
  if (only_pauses)
    usleep(200'000);
  else
    raise(SIGSTOP);
}

}  // namespace

extern "C" int memfd_create(const char* name, unsigned flags) noexcept {
  stop_if(Stop::before_memory);
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

extern "C" int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t* set) noexcept {
  stop_if(Stop::before_joining);
  const long filled = syscall(SYS_sched_getaffinity, pid, bytes, set);
  if (filled < 0) return -1;
  memset(reinterpret_cast<char*>(set) + filled, 0, bytes - static_cast<size_t>(filled));
  return 0;
}

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

constexpr auto timeout = long_deadline;
const Config by_the_deadline = {.timeout = timeout};

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

std::int32_t sum_over(Communicator& c, std::int32_t mine) {
  c.all_reduce(&mine, &mine, 1, DType::i32);
  return mine;
}

// The error with which the work fails; it must come before twice the deadline has passed.
PeerLost loss_in(const std::function<void()>& work) {
  const auto began = Clock::now();
  try {
    work();
  } catch (const PeerLost& lost) {
    const std::chrono::duration<double> took = Clock::now() - began;
    expect(took < 2 * timeout, fmt::format("after {:.2f} s: {}", took.count(), lost.what()));
    return lost;
  }
  throw std::runtime_error("nothing failed");
}

void expect_named(const PeerLost& lost, Rank rank) {
  expect(lost.rank == rank, fmt::format("rank {} is named, for {}: {}", lost.rank, rank, lost.what()));
}

TEST(Dividing, WhoIsLateForASplitIsInNothingAndHearsWhy) {
  const std::string said = over_each_transport([](const std::string& transport) {
    std::atomic<int>& gone_on = seen_by_all();
    return run_ranks(
        transport, 3,
        [&](Communicator& c) {
          c.barrier();
          if (c.rank() == 1) {
            await(gone_on, 2);
            const PeerLost lost = loss_in([&] { c.split(0, 0); });
            gone_on = 3;
            expect_named(lost, 1);
            expect(std::string(lost.what()).find("went on without it") != std::string::npos, lost.what());
            return;
          }
          expect_named(loss_in([&] { c.split(0, 0); }), 1);
          const auto rest = c.shrink(std::array{1});
          expect(rest->ranks() == 2 && sum_over(*rest, 1) == 2, "the others' sum");
          ++gone_on;
          await(gone_on, 3);
        },
        by_the_deadline);
  });
  EXPECT_EQ(said, "");
}

// Ranks 0 and 2 have shrunk without rank 1 when it comes.
TEST(Dividing, WhoIsLeftOutOfAShrinkHearsIt) {
  std::atomic<int>& gone_on = seen_by_all();
  const std::string said = run_ranks(
      "shared_memory", 3,
      [&](Communicator& c) {
        if (c.rank() != 1) {
          expect_named(loss_in([&] { c.barrier(); }), 1);
          const auto rest = c.shrink(std::array{1});
          ++gone_on;
          await(gone_on, 3);
          return;
        }
        await(gone_on, 2);
        const PeerLost lost = loss_in([&] { c.shrink({}); });
        gone_on = 3;
        expect_named(lost, 1);
        expect(std::string(lost.what()).find("was left out: ranks 0, 2 went on without it") != std::string::npos,
               lost.what());
      },
      by_the_deadline);
  EXPECT_EQ(said, "");
}

// Rank 0 waits for the stopped rank in a receive, gives it up a little later, and then comes to the shrink.
TEST(Dividing, WhoIsLeftOutOfAShrinkIsNotNamedByIt) {
  const std::string said = run_ranks(
      "shared_memory", 4,
      [&](Communicator& c) {
        float x[4] = {};
        c.barrier();
        if (c.rank() == 1) raise(SIGSTOP);
        if (c.rank() == 0) {
          std::this_thread::sleep_for(500ms);
          expect_named(loss_in([&] { c.recv(x, 4, DType::f32, 1); }), 1);
        }
        const auto rest = c.shrink(std::array{1});
        expect(rest->ranks() == 3 && sum_over(*rest, 1) == 3, "the others' sum");
        rest->barrier();
      },
      by_the_deadline);
  EXPECT_EQ(said, "rank 1: signal 9\n");
}

TEST(Dividing, AShrinksLeaderKeepsTheDeadlineToo) {
  std::atomic<int>& told = seen_by_all();
  const std::string said = run_ranks(
      "shared_memory", 3,
      [&](Communicator& c) {
        if (c.rank() == 2) kill(getpid(), SIGKILL);
        if (c.rank() == 0) {
          expect_named(loss_in([&] { c.shrink(std::array{2}); }), 1);
          told = 1;
        }
        await(told, 1);
      },
      by_the_deadline);
  EXPECT_EQ(said, "rank 2: signal 9\n");
}

// Ranks come together even if one has tried more often than the other.
TEST(Dividing, ShrinksThatAreTriedAgainComeTogether) {
  const std::vector<std::string> transports = usable_transports();
  const auto said = at_once(2 * transports.size(), [&](std::size_t i) {
    std::atomic<int>& tried = seen_by_all();
    return run_ranks(
        transports[i / 2], 2,
        [&](Communicator& c) {
          if (c.rank() == 1) {
            await(tried, i % 2 == 0 ? 1 : 2);
            std::this_thread::sleep_for(timeout / 2);
          }
          for (int tries = 0; tries < 6; ++tries) try {
              const auto rest = c.shrink({});
              expect(sum_over(*rest, 1) == 2, "the sum");
              rest->barrier();
              return;
            } catch (const PeerLost&) {
              tried += c.rank() == 0 ? 1 : 0;
            }
          throw std::runtime_error("they never meet");
        },
        by_the_deadline);
  });
  for (std::size_t i = 0; i < said.size(); ++i) EXPECT_EQ(said[i], "") << transports[i / 2];
}

// The error has the rank's number in the communicator that is split; the new one numbers ranks backwards.
TEST(Dividing, WhoStopsInASplitIsNamed) {
  constexpr std::array places = {Stop::before_memory, Stop::before_joining};
  constexpr std::array<Rank, 2> stops = {3, 1};
  const auto said = at_once(places.size(), [&](std::size_t i) {
    return run_ranks(
        "shared_memory", 4,
        [&](Communicator& c) {
          c.barrier();
          if (c.rank() == stops[i]) stop = places[i];
          expect_named(loss_in([&] { c.split(0, -c.rank()); }), stops[i]);
        },
        by_the_deadline);
  });
  for (std::size_t i = 0; i < said.size(); ++i) EXPECT_EQ(said[i], fmt::format("rank {}: signal 9\n", stops[i]));
}

TEST(Dividing, WhoIsStoppedIsNamedAndNotWhoWaitsForIt) {
  const std::string said = run_ranks(
      "shared_memory", 3,
      [&](Communicator& c) {
        float x[4] = {};
        c.barrier();
        if (c.rank() == 2) raise(SIGSTOP);
        expect_named(loss_in([&] {
                       if (c.rank() == 0)
                         c.recv(x, 4, DType::f32, 2);
                       else
                         c.split(0, c.rank());
                     }),
                     2);
      },
      by_the_deadline);
  EXPECT_EQ(said, "rank 2: signal 9\n");
}

// After a failed split, the communicator can only be shrunk.
TEST(Dividing, ASplitThatFailsEndsTheCommunicator) {
  std::atomic<int>& over = seen_by_all();
  const std::string said = run_ranks(
      "shared_memory", 3,
      [&](Communicator& c) {
        if (c.rank() == 2) return await(over, 2);
        expect_named(loss_in([&] { c.split(0, 0); }), 2);
        expect_named(loss_in([&] { c.barrier(); }), 2);
        expect_named(loss_in([&] { c.split(0, 0); }), 2);
        const auto rest = c.shrink(std::array{2});
        expect(sum_over(*rest->split(0, 0), 1) == 2, "the others' sum");
        ++over;
        await(over, 2);
      },
      by_the_deadline);
  EXPECT_EQ(said, "");
}

TEST(Dividing, AnAbortEndsASplit) {
  const std::string said = run_ranks("shared_memory", 2,
                                     [](Communicator& c) {
                                       if (c.rank() == 1) {
                                         std::this_thread::sleep_for(100ms);
                                         return c.abort();
                                       }
                                       EXPECT_THROW(c.split(0, 0), Aborted);
                                       if (testing::Test::HasFailure()) throw std::runtime_error("not Aborted");
                                     },
                                     {.timeout = 20s});
  EXPECT_EQ(said, "");
}

// A rank without a color returns early, and may abort the communicator while the others still make their child.
TEST(Dividing, AnAbortByWhoHasReturnedFromASplitDoesNotEndIt) {
  const std::string said = run_ranks("shared_memory", 3,
                                     [](Communicator& c) {
                                       if (c.rank() == 1) {
                                         c.split(std::nullopt, 0);
                                         return c.abort();
                                       }
                                       only_pauses = true;
                                       stop = c.rank() == 0 ? Stop::before_memory : Stop::before_joining;
                                       const auto child = c.split(0, 0);
                                       expect(sum_over(*child, 1) == 2, "the child's sum");
                                     },
                                     {.timeout = 20s});
  EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace trellis::ccl
