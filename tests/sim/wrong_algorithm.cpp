// Algorithms are proved before they are priced: a wrong one, registered in a child process, is refused or left out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "schedule/proof/algorithm_refutation.h"
#include "sim/cluster/answer/workload_answer.h"
#include "sim/cluster/tune/search.h"
#include "sim/cluster/workload/workload.h"

namespace trellis::sim {
namespace {

using schedule::Builder;
using schedule::Request;
using enum schedule::Collective;

constexpr const char* wrong = "forgets_the_last";
constexpr const char* idle = "does_nothing";

// Everybody's data are summed at rank 0 and sent back, but not to the last rank.
void forget_the_last(const Request& request, Builder& b) {
  for (std::int64_t s = 0; s < request.shares(); ++s) {
    const auto at = [s](Rank r) { return schedule::data(r, s); };
    for (Rank r = 1; r < b.ranks(); ++r) b.reduce(at(r), at(0));
    for (Rank r = 1; r + 1 < b.ranks(); ++r) b.copy(at(0), at(r));
  }
}

// Registers two wrong algorithms for the rest of this process's life, so it may only run in a child.
void plant() {
  const schedule::RegisteredAlgorithm planted{{
      .name = wrong,
      .summary = "sums at rank 0",
      .constraint = "any rank count",
      .serves = {all_reduce},
      .pieces = [](const Request& r) { return r.shares(); },
      .build = forget_the_last,
  }};
  const schedule::RegisteredAlgorithm other{{
      .name = idle,
      .summary = "leaves all data where they are",
      .constraint = "any rank count",
      .serves = {all_reduce},
      .build = [](const Request&, Builder&) {},
  }};
}

// What a call complains of; "nothing" where it goes well.
template <class Call>
std::string complaint(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

void tell(const std::string& text) { fmt::print(stderr, "{}\n", text); }

// Runs statements in a child with the wrong algorithms registered, and checks what they print on standard error.
#define IN_A_CHILD(statements, said) \
  EXPECT_EXIT(                       \
      {                              \
        plant();                     \
        statements;                  \
        _exit(0);                    \
      },                             \
      testing::ExitedWithCode(0), said)

CollectiveQuestion asks(const Machine& machine) {
  return {.group = first_in_a_row(machine, 0), .bytes = 1 << 20, .interval = false};
}

TEST(WrongAlgorithm, IsRefutedInItsOwnFormAndOnALargeMachineByASmallOne) {
  IN_A_CHILD(
      {
        const auto& planted = schedule::algorithm_named(wrong);
        tell(schedule::refutation(planted, {.dims = {3, 2}}));
        tell(schedule::refutation(planted, {.dims = {48, 48, 48}, .channels = 4, .segments = 64}));
      },
      "forgets_the_last does all_reduce wrong: on 3x2 .*rank 5(.|\n)*does all_reduce wrong: on 6x4x2 .*rank 47");
}

TEST(WrongAlgorithm, IsRefusedWhereItIsNamed) {
  IN_A_CHILD(
      {
        PricingSession priced(machine_spec("torus:4x4"));
        CollectiveQuestion question = asks(priced.machine());
        question.config = AlgorithmConfig{.algorithm = wrong};
        tell(complaint([&] { answer(question, priced); }));
        question.blocks.assign(16, 5);
        tell(complaint([&] { answer(question, priced); }));
      },
      "forgets_the_last does all_reduce wrong: on 16 .*\n.*forgets_the_last");
}

// An algorithm that does nothing would take the least time.
TEST(WrongAlgorithm, IsLeftOutOfAChoiceAndTold) {
  IN_A_CHILD(
      {
        PricingSession priced(machine_spec("torus:4x4"));
        const CollectiveAnswer a = answer(asks(priced.machine()), priced);
        const bool right = a.config.algorithm != wrong && a.config.algorithm != idle;
        tell(fmt::format("chose {}", right ? "another" : a.config.algorithm));
        for (const RejectedConfig& l : a.choice.left_out) tell(fmt::format("left out {}", l.why));
      },
      "chose another\nleft out does_nothing does all_reduce wrong: on ");
}

TEST(WrongAlgorithm, IsRefusedInAWorkload) {
  IN_A_CHILD(
      {
        PricingSession priced(machine_spec("ring:4"));
        const Workload step = workload_of(read_graph("step", "ranks 4\nall_reduce sum 1MB by forgets_the_last\n"));
        tell(complaint([&] { answer(step, PlayOptions(), {}, priced); }));
      },
      "forgets_the_last does all_reduce wrong");
}

TEST(WrongAlgorithm, IsInNothingThatASearchGives) {
  IN_A_CHILD(
      {
        const Machine machine(machine_spec("torus:2x2"));
        const SearchResult result = search(machine, groups_of(machine).front(), {}, 1 << 16,
                                           {.algorithms = {wrong, "ring"}, .most_levels = 2}, {});
        const auto uses = [](const ConfigCost& c) {
          return text_of(c.config).find(wrong) != std::string::npos || c.config.algorithm == idle;
        };
        tell(fmt::format("{} fixed, {} found, {} with it", result.fixed.size() > 0 ? "some" : "none",
                         result.found.size() > 0 ? "some" : "none",
                         std::ranges::count_if(result.fixed, uses) + std::ranges::count_if(result.found, uses)));
        for (const RejectedConfig& l : result.left_out) tell(fmt::format("left out {}", l.why));
      },
      "some fixed, some found, 0 with it\n(.|\n)*left out forgets_the_last does all_reduce wrong: on 2x2 ");
}

// None of the project's algorithms is refused: for many ranks, schedules are proved on a small form of the machine.
TEST(WrongAlgorithm, IsNoneOfTheProjects) {
  for (const char* name : {"trn1.32xlarge", "trn2.48xlarge x 3", "torus:48x48x48", "torus:5x7"}) {
    const Machine machine(machine_spec(name));
    for (const schedule::Collective collective : schedule::collectives()) {
      Pricer pricer(machine, first_in_a_row(machine, 0), {.operation = {.collective = collective, .peer = last_rank}});
      for (AlgorithmConfig config : configs_of(pricer, {}, {1}, {1})) {
        config.dims = usual_dims(config.algorithm, machine, machine.ranks());
        if (!pricer.refusal(config).empty()) continue;
        EXPECT_EQ(complaint([&] { pricer.expect_right(config); }), "nothing") << name << " " << text_of(config);
      }
    }
  }
}

}  // namespace
}  // namespace trellis::sim
