// Which programs are recognised as all-to-all rounds, and that all ranks of a call recognise the same ones.
#include "ccl/plan/exchange_rounds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "ccl/plan/compiled_program.h"
#include "ccl/transports/segment/cells.h"
#include "schedule/collective_traits.h"

namespace trellis::ccl {
namespace {

using schedule::AlgorithmConfig;
using schedule::Collective;
using schedule::Request;

constexpr TransportCapabilities paths{.lanes = 4, .round_bytes = std::size_t{1} << 24};

struct Found {
  ExchangeRounds rounds;
  CompiledProgram compiled;
};

Request request_for(std::string_view algorithm, Collective collective, Rank ranks) {
  return schedule::request_by({.algorithm = std::string(algorithm)},
                              {.operation = {.collective = collective}, .dims = {ranks}});
}

Found found(std::string_view algorithm, Collective collective, Rank ranks, Rank rank, std::size_t count) {
  const schedule::Algorithm& a = schedule::algorithm_named(algorithm);
  const Request request = request_for(algorithm, collective, ranks);
  const schedule::Program program = schedule::make_program(a, request, rank);
  CompiledProgram compiled = compile(schedule::task_of(a, request), program, rank, {count, {}}, sizeof(float), paths);
  return {compiled.rounds, compiled};
}

std::size_t rounds(std::string_view algorithm, Collective collective, Rank ranks) {
  return found(algorithm, collective, ranks, ranks - 1, 1000).rounds.rounds.size();
}

TEST(ExchangeRounds, AreThoseInWhichEveryRankSendsToEveryOther) {
  using enum Collective;
  EXPECT_EQ(rounds("direct", all_reduce, 5), 1U);
  EXPECT_EQ(rounds("direct", barrier, 5), 1U);
  EXPECT_EQ(rounds("direct", all_to_all, 5), 1U);
  EXPECT_EQ(rounds("mesh", all_reduce, 5), 2U);
  EXPECT_EQ(rounds("ring", all_reduce, 5), 0U);
  EXPECT_EQ(rounds("recursive_doubling", all_reduce, 4), 0U);
  EXPECT_EQ(rounds("direct", broadcast, 5), 0U);
  EXPECT_EQ(rounds("direct", all_reduce, 2), 0U) << "over a lane they are as fast";
  EXPECT_EQ(rounds("dissemination", barrier, 3), 0U) << "it sends the two one after the other";
}

TEST(ExchangeRounds, WhatAllAreSentIsWrittenOnce) {
  const ExchangeRounds mesh = found("mesh", Collective::all_reduce, 4, 2, 1000).rounds;
  ASSERT_EQ(mesh.rounds.size(), 2U);
  EXPECT_FALSE(mesh.rounds[0].same);
  EXPECT_TRUE(mesh.rounds[1].same);
  EXPECT_TRUE(found("direct", Collective::all_gather, 4, 2, 10).rounds.rounds.at(0).same);
}

TEST(ExchangeRounds, ASumReadsItsSourcesWhereTheyAre) {
  const Found direct = found("direct", Collective::all_reduce, 4, 2, 10);
  const ExchangeRounds::Round& round = direct.rounds.rounds.at(0);
  ASSERT_NE(round.sum, ExchangeRounds::none);
  EXPECT_EQ(round.summed, (std::vector<Rank>{0, 1, -1, 3})) << "in the order of ranks, with this rank's own";
  EXPECT_EQ(found("direct", Collective::all_gather, 4, 2, 10).rounds.rounds.at(0).sum, ExchangeRounds::none);
}

// A rank that found rounds where another found none would wait for ever.
TEST(ExchangeRounds, AllRanksFindTheSameWhereTheirProgramsAreAlike) {
  std::size_t alike = 0;
  for (const auto& [name, algorithm] : schedule::algorithms())
    for (const Collective collective : algorithm.serves)
      for (Rank ranks = 3; ranks <= 9; ++ranks) {
        const Request request = request_for(name, collective, ranks);
        if (schedule::uneven(collective) || !schedule::refusal(algorithm, request).empty() ||
            !alike_on_all({.algorithm = name}, request))
          continue;
        for (const std::size_t count :
             {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{840}, std::size_t{10007}}) {
          if (!divides(schedule::task_of(algorithm, request), {count, {}})) continue;
          const Found first = found(name, collective, ranks, 0, count);
          alike += first.rounds.empty() ? 0 : 1;
          for (Rank r = 1; r < ranks; ++r) {
            const Found other = found(name, collective, ranks, r, count);
            const std::string of =
                fmt::format("{} by {}, {} elements, rank {} of {}", schedule::name(collective), name, count, r, ranks);
            ASSERT_EQ(other.rounds.rounds.size(), first.rounds.rounds.size()) << of;
            for (std::size_t k = 0; k < first.rounds.rounds.size(); ++k) {
              EXPECT_EQ(other.rounds.rounds[k].same, first.rounds.rounds[k].same) << of;
              EXPECT_EQ(other.rounds.rounds[k].chunks, first.rounds.rounds[k].chunks) << of;
            }
          }
        }
      }
  EXPECT_GT(alike, 100U);
}

// ExchangeRounds::bytes(), which is compared with a round's room in shared memory, covers what each rank publishes.
TEST(ExchangeRounds, TheirBytesAreThoseOfTheLargestRank) {
  for (const char* algorithm : {"direct", "mesh"})
    for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
      for (const Rank ranks : {3, 4, 7})
        for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{1000}, std::size_t{4099}}) {
          const Request request = request_for(algorithm, collective, ranks);
          const schedule::Task task = schedule::task_of(schedule::algorithm_named(algorithm), request);
          for (Rank r = 0; r < ranks; ++r) {
            const Found f = found(algorithm, collective, ranks, r, count);
            ASSERT_FALSE(f.rounds.empty());
            const std::size_t room = f.rounds.bytes(largest_chunk(task, count, 16) * sizeof(float));
            for (std::size_t k = 0; k < f.rounds.rounds.size(); ++k) {
              std::size_t largest = 0;
              for (Rank to = 0; to < ranks; ++to)
                if (to != r)
                  largest = std::max(largest, f.compiled.steps[f.rounds.send(k, to)].from.elements * sizeof(float));
              const std::size_t takes =
                  f.rounds.rounds[k].same ? largest : static_cast<std::size_t>(ranks) * round_stride(largest, ranks);
              EXPECT_LE(takes, room) << algorithm << ' ' << schedule::name(collective) << ' ' << ranks << ' ' << count;
            }
          }
        }
}

}  // namespace
}  // namespace trellis::ccl
