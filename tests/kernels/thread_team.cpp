// Threads that share work and wait for each other.
#include "kernels/dispatch/thread_team.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/dispatch/cpu.h"

namespace trellis::kernels {
namespace {

// Checks that each share was done once in each round, and that a round's shares are over before the next one begins.
void expect_each_share_once(int threads, int rounds) {
  struct Done {
    std::vector<int> times;
    std::atomic<int> now = 0;
  } done{std::vector<int>(static_cast<std::size_t>(threads)), 0};
  for (int round = 0; round < rounds; ++round) {
    run_team(
        threads,
        [](void* context, int thread, int) {
          Done& all = *static_cast<Done*>(context);
          ++all.times[static_cast<std::size_t>(thread)];
          ++all.now;
        },
        &done);
    ASSERT_EQ(done.now, (round + 1) * threads);
  }
  EXPECT_EQ(done.times, std::vector<int>(static_cast<std::size_t>(threads), rounds));
}

TEST(Team, DoesEachShareOnceInEachRound) {
  for (const TeamSpinTime wait : {TeamSpinTime::long_time, TeamSpinTime::short_time}) {
    set_team_wait(wait);
    for (const int threads : {1, 2, 3, 8, 2, 5}) expect_each_share_once(threads, 200);
  }
  set_team_wait(TeamSpinTime::long_time);
}

TEST(Team, IsOfTheThreadThatCalls) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back([] { expect_each_share_once(3, 200); });
  for (std::thread& each : callers) each.join();
}

TEST(Team, WorkInsideOfItIsDoneOnOneThread) {
  std::atomic<int> shares = 0;
  run_team(
      3,
      [](void* context, int, int) {
        struct Inner {
          std::thread::id thread;
          std::atomic<int>* shares;
        } inner{std::this_thread::get_id(), static_cast<std::atomic<int>*>(context)};
        run_team(
            4,
            [](void* of, int, int) {
              auto& outer = *static_cast<Inner*>(of);
              EXPECT_EQ(std::this_thread::get_id(), outer.thread);
              ++*outer.shares;
            },
            &inner);
      },
      &shares);
  EXPECT_EQ(shares, 12);
}

// A child has none of its parent's threads.
TEST(Team, WorksInAChildProcess) {
  expect_each_share_once(3, 2);
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> shares = 0;
    run_team(
        3, [](void* context, int, int) { ++*static_cast<std::atomic<int>*>(context); }, &shares);
    _exit(shares == 3 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// std::exit destroys what the thread has, as a return from main does.
TEST(Team, LetsAChildProcessEnd) {
  expect_each_share_once(8, 2);
  const pid_t child = fork();
  if (child == 0) std::exit(7);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST(Team, WaitsAsTheEnvironmentSays) {
  const auto spins = [](const char* policy, const char* count) {
    const TeamSpinCounts s = team_spins_of(policy, count);
    return std::pair{s.with_cores, s.without};
  };
  const auto usual = spins(nullptr, nullptr);
  EXPECT_GT(usual.first, 1000 * usual.second);
  EXPECT_GT(usual.second, 0);
  EXPECT_EQ(spins("passive", nullptr), std::pair(0LL, 0LL));
  EXPECT_GT(spins("ACTIVE", nullptr).first, usual.first);
  EXPECT_EQ(spins("PASSIVE", "1000"), std::pair(1000LL, 0LL));
  EXPECT_EQ(spins("ACTIVE", "1000"), std::pair(1000LL, 1000LL));
  EXPECT_EQ(spins(nullptr, "50"), std::pair(50LL, 50LL));
  EXPECT_EQ(spins(nullptr, "1000"), std::pair(1000LL, usual.second));
  EXPECT_EQ(spins(nullptr, "infinite"), std::pair(spins("active", nullptr).first, usual.second));
  for (const char* count : {"many", "", "-1", "k", "10q", "10kk", "1e3"})
    EXPECT_EQ(spins(nullptr, count), usual) << count;
  for (const char* policy : {"Passive", " passive ", "PASSIVE"}) EXPECT_EQ(spins(policy, nullptr).first, 0) << policy;
  for (const char* count : {"INFINITE", "Infinity", " infinite "})
    EXPECT_EQ(spins(nullptr, count), spins(nullptr, "infinite")) << count;
  EXPECT_EQ(spins(nullptr, " 10k ").first, 10'000);
  EXPECT_EQ(spins(nullptr, "2 M").first, 2'000'000);
  EXPECT_EQ(spins(nullptr, "99999999t"), spins(nullptr, "infinite"));
  EXPECT_TRUE(team_spins_of(nullptr, nullptr).adapts);
  EXPECT_FALSE(team_spins_of("ACTIVE", nullptr).adapts);
  EXPECT_FALSE(team_spins_of(nullptr, "1000").adapts);
}

TEST(Team, OfMoreThreadsThanCoresWaitsAShortTime) {
  const TeamSpinTime before = team_wait();  // this thread may have had a larger team
  std::thread([] {
    run_team(
        cpu().cores + 1, [](void*, int, int) {}, nullptr);
    EXPECT_EQ(team_wait(), TeamSpinTime::short_time);
  }).join();
  EXPECT_EQ(team_wait(), before);
}

}  // namespace
}  // namespace trellis::kernels
