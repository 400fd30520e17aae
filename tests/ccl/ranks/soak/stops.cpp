// Splits and shrinks, tried again where they fail, while ranks are stopped and go on at random: what comes out well
// must be right, and all must come out in time. A few here; tools/soak runs it many times.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <thread>

#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

constexpr int rounds = 5, most_tries = 6;

struct StopAt {
  Rank rank;
  std::chrono::milliseconds after, length;
};

// The same plan on every rank. All of its times are multiplied by `slower`.
struct Plan {
  Plan(std::uint32_t s, int slower)
      : seed(s), timeout(400ms * slower), longest_answer(1400ms * slower), longest_stop(1000ms * slower) {
    std::mt19937 random(seed);
    ranks = 2 + static_cast<Rank>(random() % 4);
    for (std::uint32_t i = 0; i < 1 + seed % 3; ++i) {
      const Rank rank = static_cast<Rank>(random() % static_cast<std::uint32_t>(ranks));
      const auto after = std::chrono::milliseconds(random() % 450) * slower;
      stops.push_back({rank, after, std::chrono::milliseconds(20 + random() % 1000) * slower});
    }
  }
  std::uint32_t seed;
  std::chrono::milliseconds timeout, longest_answer, longest_stop;
  Rank ranks;
  std::vector<StopAt> stops;
};

// Counts the beginnings and the ends of stops: odd while the process is stopped.
std::atomic<int> stops_of_this_process = 0;

// Stops this process. A forked one continues it, as a stopped process can't.
void stop_for(std::chrono::milliseconds length) {
  const pid_t me = getpid();
  ++stops_of_this_process;
  if (fork() == 0) {
    usleep(static_cast<useconds_t>(std::chrono::microseconds(length).count()));
    kill(me, SIGCONT);
    _exit(0);
  }
  kill(me, SIGSTOP);
  usleep(1000);
  ++stops_of_this_process;
}

constexpr std::string_view too_late = " came too late: ";

// Throws logic_error for an answer that came too late although this process was not stopped.
template <class Work>
auto in_time(const char* what, const Plan& plan, Work&& work) {
  const auto from = Clock::now();
  const int stops = stops_of_this_process;
  const auto check = [&] {
    const std::chrono::duration<double> took = Clock::now() - from;
    if (took > plan.longest_answer && stops % 2 == 0 && stops_of_this_process == stops)
      throw std::logic_error(fmt::format("{}{}{:.2f} s", what, too_late, took.count()));
  };
  try {
    auto result = work();
    check();
    return result;
  } catch (const std::logic_error&) {
    throw;
  } catch (...) {
    check();
    throw;
  }
}

// A communicator's ranks by their numbers in the first one.
using Who = std::vector<Rank>;

void check_members(Communicator& c, const Who& who, const Plan& plan) {
  std::int64_t expected = 0, mine = std::int64_t{1} << who[static_cast<std::size_t>(c.rank())];
  for (const Rank r : who) expected += std::int64_t{1} << r;
  if (c.ranks() != static_cast<Rank>(who.size()))
    throw std::logic_error(fmt::format("{} ranks, for {}", c.ranks(), fmt::join(who, ", ")));
  in_time("all_reduce", plan, [&] { return c.all_reduce(&mine, &mine, 1, DType::i64), 0; });
  if (mine != expected) throw std::logic_error(fmt::format("members {:b}, for {:b}", mine, expected));
}

// Splits, and checks this rank's part. If that fails, aborts the communicator that was split.
void part_with(Communicator& c, const Who& who, std::uint32_t colors, const Plan& plan) {
  const auto color_of = [&](Rank r) { return static_cast<int>(colors >> 2 * r & 1); };
  const int mine = color_of(who[static_cast<std::size_t>(c.rank())]);
  Who expected;
  for (const Rank r : who)
    if (color_of(r) == mine) expected.push_back(r);
  const auto part = in_time("split", plan, [&] { return c.split(mine, 0); });
  try {
    check_members(*part, expected, plan);
  } catch (const PeerLost&) {
    c.abort();
    throw Aborted("a part of it failed");
  }
}

void spend(Communicator& c, const Who& who, const Plan& plan) {
  std::mt19937 random(plan.seed + static_cast<std::uint32_t>(who.size()));
  check_members(c, who, plan);
  for (int round = 0; round < rounds; ++round) {
    const std::uint32_t what = static_cast<std::uint32_t>(random()), colors = static_cast<std::uint32_t>(random());
    if (what % 4 == 0) check_members(*in_time("shrink", plan, [&] { return c.shrink({}); }), who, plan);
    if (what % 4 == 1) check_members(c, who, plan);
    if (what % 4 >= 2) part_with(c, who, colors, plan);
    std::this_thread::sleep_for(std::chrono::milliseconds(what >> 8 & 0x7F));
  }
  check_members(c, who, plan);
}

// Shrinks to the members without `out`; after every second try, the rank that its error names is added to `out`. null:
// this rank was given up.
std::unique_ptr<Communicator> go_on(Communicator& c, Who& who, std::vector<Rank> out, const Plan& plan) {
  for (int tries = 0; tries < most_tries; ++tries) try {
      auto left = in_time("shrink", plan, [&] { return c.shrink(out); });
      Who kept;
      for (Rank r = 0; r < c.ranks(); ++r)
        if (std::ranges::find(out, r) == out.end()) kept.push_back(who[static_cast<std::size_t>(r)]);
      who = kept;
      return left;
    } catch (const PeerLost& lost) {
      if (lost.rank == c.rank()) return nullptr;
      if (std::ranges::find(out, lost.rank) != out.end())
        throw std::logic_error(fmt::format("rank {} is named, which takes no part: {}", lost.rank, lost.what()));
      if (tries % 2 == static_cast<int>(plan.seed % 2)) out.push_back(lost.rank);
    } catch (const Mismatch&) {  // others have other lists, by now
      return nullptr;
    }
  return nullptr;
}

void live(Communicator& first, const Plan& plan) {
  for (const StopAt& s : plan.stops)
    if (s.rank == first.rank())
      std::thread([s] {
        std::this_thread::sleep_for(s.after);
        stop_for(s.length);
      }).detach();
  Who who(static_cast<std::size_t>(plan.ranks));
  std::iota(who.begin(), who.end(), 0);
  std::vector<std::unique_ptr<Communicator>> made;
  for (Communicator* c = &first; c != nullptr;) {
    std::vector<Rank> out;
    try {
      return spend(*c, who, plan);
    } catch (const PeerLost& lost) {
      if (lost.rank == c->rank()) return;
      out.push_back(lost.rank);
    } catch (const Mismatch&) {  // the others have excluded another one by now
      return;
    } catch (const Aborted&) {
    }
    made.push_back(go_on(*c, who, out, plan));
    c = made.back().get();
  }
}

// Whether every complaint is one that a machine too busy for the timeout explains: ranks that joined late, before
// anything was stopped, and answers that came too late.
bool is_of_time(const std::string& said) {
  return each_line_has_one_of(said, {"did not join in time", "the store of the unique id", std::string(too_late)});
}

// After a complaint that a busy machine explains, the same plan runs again with times that no load reaches.
void storm(std::uint32_t seed) {
  std::string said, stops;
  for (const int slower : {1, 10}) {
    const Plan plan(seed, slower);
    said = run_processes(
        plan.ranks, [&](Communicator& c) { live(c, plan); }, {.timeout = plan.timeout}, plan.longest_stop * 3);
    stops = fmt::format("seed {}: {} ranks;", seed, plan.ranks);
    for (const StopAt& s : plan.stops)
      stops += fmt::format(" rank {} at {} ms for {} ms;", s.rank, s.after.count(), s.length.count());
    if (!is_of_time(said)) break;
    std::cout << "[   AGAIN  ] " << said << stops << std::endl;
  }
  EXPECT_EQ(said, "") << stops;
}

TEST(Stops, AFewStormsOfThem) {
  for (const std::uint32_t seed : {1, 5}) storm(seed);
}

TEST(Soak, DISABLED_RandomStops) { storm(std::random_device()()); }

}  // namespace
}  // namespace trellis::ccl
