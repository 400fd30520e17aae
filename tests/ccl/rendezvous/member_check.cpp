// The check that all ranks of a communicator have come and mean the same communicator.
#include "ccl/rendezvous/member_check.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

// The error of each member; "": it has none.
std::vector<std::string> call(const std::vector<MemberCheck>& rolls, std::chrono::milliseconds patience) {
  const auto store = memory_store();
  std::vector<std::string> heard(rolls.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < rolls.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        check_members(*store, rolls[i], Clock::now() + patience);
      } catch (const std::exception& e) {
        heard[i] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return heard;
}

TEST(RollCall, AllWhoComeGoOn) {
  std::vector<MemberCheck> rolls;
  for (Rank r = 0; r < 16; ++r) rolls.push_back({.mine = r, .members = 16, .terms = "the same"});
  EXPECT_EQ(call(rolls, 20s), std::vector<std::string>(16));
}

TEST(RollCall, WhoDoesNotComeIsNamed) {
  // If several are missing, the first is named; here that is node 0, however late the others begin.
  EXPECT_EQ(call({{.noun = "node", .mine = 1, .members = 3}, {.noun = "node", .mine = 2, .members = 3}}, 100ms),
            std::vector<std::string>(2, "node 0 did not join in time"));
}

TEST(RollCall, WhoWasToldOtherTermsIsNamedToAllAtOnce) {
  const auto began = Clock::now();
  const auto heard =
      call({{.mine = 0, .members = 3, .terms = "3 of us"}, {.mine = 1, .members = 2, .terms = "2 of us"}}, 60s);
  EXPECT_TRUE(heard[0] == "rank 1 was told of 2 of us, and rank 0 of 3 of us" ||
              heard[0] == "rank 0 was told of 3 of us, and rank 1 of 2 of us")
      << heard[0];
  EXPECT_EQ(heard[0], heard[1]);
  EXPECT_LT(Clock::now() - began, 50s);  // nobody waits for what will not come
}

TEST(RollCall, WhoComesASecondTimeIsNamedAlthoughAnotherIsMissing) {
  const auto heard = call({{.mine = 1, .members = 2}, {.mine = 1, .members = 2}}, 200ms);
  const std::string twice = "rank 1 has joined already: two were told the same rank";
  const bool second = heard[1].starts_with(twice);
  EXPECT_TRUE(second || heard[0].starts_with(twice)) << heard[0];
  EXPECT_EQ(heard[second ? 0 : 1], "rank 0 did not join in time");
}

TEST(RollCall, WhatNoFirstMemberWroteIsRefused) {
  for (const std::string note : {"", "0", "x terms", "99999999999 terms"}) {
    const auto store = memory_store();
    store->add("come", 1);
    store->set("first", std::as_bytes(std::span(note)));
    EXPECT_THROW(check_members(*store, {.mine = 1, .members = 2, .terms = "terms"}, Clock::now() + 1s),
                 std::invalid_argument)
        << note;
  }
}

}  // namespace
}  // namespace trellis::ccl
