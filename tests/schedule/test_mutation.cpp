// Attacks the verifier with random edits of good schedules and of their tasks. No edit may be accepted that makes steps
// and task disagree. Accepted ones must give the right result in adversarial execution and on real buffers, and must
// still verify after rewriting for memory that peers can't read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "schedule/proof/verify.h"
#include "schedule/stage_unreadable_buffers.h"
#include "tests/schedule/buffers.h"
#include "tests/schedule/chaos.h"
#include "tests/schedule/damage.h"
#include "tests/schedule/requests.h"

namespace trellis::schedule {
namespace {

constexpr Rank most_ranks = 8;
constexpr int chaotic_runs = 4;
constexpr int buffer_runs = 4;

std::vector<Case> victims() {
  std::vector<Case> all;
  each_case(most_ranks, [&](const Case& c) {
    if (c.request.ranks() < 2 || c.request.ranks() == 3) return;
    if (c.request.ranks() == 8 || (c.request.ranks() % 2 == 0 && c.request.dims.size() > 1) || all.size() % 7 == 0)
      all.push_back(c);
  });
  return all;
}

bool unchanged(const Schedule& a, const Schedule& b) {
  return a.task == b.task && a.channels == b.channels &&
         std::ranges::equal(a.programs, b.programs, [](const Program& x, const Program& y) { return same(x, y); });
}

// The verifier's complaint; empty if the schedule is accepted.
std::string complaint(const Schedule& s) {
  try {
    const Report report = verify(s);
    return report.ok() ? "" : report.text();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

std::string misbehaves(const Schedule& s, std::mt19937& random) {
  std::string how;
  for (int run = 0; run < chaotic_runs && how.empty(); ++run) how = run_in_chaos(s, random);
  for (int run = 0; run < buffer_runs && how.empty(); ++run) how = run_on_buffers(s, random);
  return how;
}

using Damage = std::string (*)(Schedule&, std::mt19937&);

// Some edits of every kind must be caught. Those that are not caught must be harmless.
void attack(Damage damage, int edits_wanted, std::mt19937& random) {
  struct Tally {
    int caught = 0, harmless = 0;
  };
  std::map<std::string, Tally> tallies;
  auto cases = victims();
  ASSERT_FALSE(cases.empty());
  std::shuffle(cases.begin(), cases.end(), random);
  int edits = 0;
  for (std::size_t at = 0; edits < edits_wanted; ++at) {
    const Case& c = cases[at % cases.size()];
    const Schedule good = make(*c.algorithm, c.request);
    for (int i = 0; i < 12; ++i) {
      Schedule edited = good;
      const std::string what = damage(edited, random);
      if (what.empty()) continue;
      const bool caught = !complaint(edited).empty();
      if (!caught && unchanged(edited, good)) continue;  // only accepted edits can be compared
      ++edits;
      ++(caught ? tallies[what].caught : tallies[what].harmless);
      if (caught) continue;
      ASSERT_EQ(misbehaves(edited, random), "") << c.text() << ": an edit that " << what << " was accepted";
      ASSERT_EQ(complaint(stage_unreadable_buffers(edited, {.input = true, .output = true})), "")
          << c.text() << ": an edit that " << what << ", shown";
    }
  }
  for (const auto& [what, tally] : tallies) {
    fmt::print("{:>6} caught {:>6} harmless: {}\n", tally.caught, tally.harmless, what);
    // An added wait for a step listed earlier hardly ever closes a cycle.
    EXPECT_TRUE(tally.caught > 0 || what == "adds a wait") << what;
  }
}

TEST(Mutation, NoEditOfStepsPassesThatChangesTheMeaning) {
  std::mt19937 random(20'000);
  attack(damage, 10'000, random);
}

TEST(Mutation, NoEditOfTheTaskPassesThatTheStepsDoNotSolve) {
  std::mt19937 random(1'000);
  attack(damage_task, 5'000, random);
}

TEST(Soak, DISABLED_ManyEditsOfSteps) {
  std::mt19937 random(20'000);
  attack(damage, 60'000, random);
}

TEST(Soak, DISABLED_ManyEditsOfTheTask) {
  std::mt19937 random(1'000);
  attack(damage_task, 30'000, random);
}

TEST(Mutation, ChaosItselfCatchesFaults) {
  std::mt19937 random(7);
  Schedule s = make("ring", {.dims = {4}});
  for (int run = 0; run < 50; ++run) EXPECT_EQ(run_in_chaos(s, random), "");
  for (Program& program : s.programs)
    for (Step& step : program.steps) step.after = {};
  int wrong = 0;
  for (int run = 0; run < 50; ++run) wrong += !run_in_chaos(s, random).empty();
  EXPECT_GT(wrong, 40);
}

TEST(Mutation, BuffersThemselvesCatchFaults) {
  std::mt19937 random(7);
  const auto ends = [&](Collective c, auto edit) {
    Schedule s = make("ring", {.operation = {.collective = c}, .dims = {4}, .channels = 2});
    EXPECT_EQ(run_on_buffers(s, random), "");
    edit(s.programs[1]);
    return run_on_buffers(s, random);
  };
  const auto receive = [](Program& p) { return std::ranges::find(p.steps, Op::recv_reduce, &Step::op); };
  const auto send = [](Program& p) { return std::ranges::find(p.steps, Op::send, &Step::op); };
  EXPECT_EQ(ends(Collective::all_reduce, [&](Program& p) { receive(p)->op = Op::recv; }).substr(0, 4), "rank");
  EXPECT_NE(ends(Collective::all_gather, [&](Program& p) { send(p)->from.first ^= 1; }), "");
  const auto other_length = [&](Program& p) { p.scratch_sizes.front().like = (p.scratch_sizes.front().like + 2) % 8; };
  int noticed = 0;  // a wrong length shows unless lengths happen to be equal
  for (int run = 0; run < 20; ++run)
    noticed += ends(Collective::reduce_scatter_v, other_length).find("words meets one of") != std::string::npos;
  EXPECT_GT(noticed, 5);
  EXPECT_EQ(ends(Collective::all_reduce,
                 [&](Program& p) {
                   Step spoil{.op = Op::copy, .to = {0, 1, Buffer::input}, .from = {0, 1, Buffer::output}};
                   std::vector<std::int32_t> all(p.steps.size());
                   std::iota(all.begin(), all.end(), 0);
                   p.set_after(spoil, all);
                   p.steps.push_back(spoil);
                 }),
            "rank 1's input was written to");
}

}  // namespace
}  // namespace trellis::schedule
