// All that can happen in a split or shrink, in worlds small enough to visit every state of.
#include "ccl/divide/split_protocol.h"

#include <gtest/gtest.h>

#include "tests/ccl/meeting_model.h"

namespace trellis::ccl {
namespace {

using Call = MembershipNotice::Call;

ModelCall shrink(std::vector<Rank> members, int tries) { return {.members = std::move(members), .tries = tries}; }
ModelCall split(std::int32_t color, std::int32_t key = 0) { return {.call = Call::split, .wish = {color, key}}; }

Scenario two_that_try_again() { return {.scripts = {{shrink({0, 1}, 3)}, {shrink({0, 1}, 3)}}}; }
Scenario three_that_try_again() {
  return {.scripts = {{shrink({0, 1, 2}, 2)}, {shrink({0, 1, 2}, 1)}, {shrink({0, 1, 2}, 1)}}};
}
Scenario two_that_split_twice() { return {.scripts = {{split(0), split(1)}, {split(0), split(0)}}}; }

void visit(Scenario scenario) {
  Model model(std::move(scenario));
  EXPECT_NO_THROW(model.explore());
  EXPECT_GT(model.well(), 0u);
  EXPECT_GT(model.badly(), 0u);
  testing::Test::RecordProperty("states", static_cast<int>(model.states()));
}

TEST(Rendezvous, ShrinksThatAreTriedAgainAnyNumberOfTimesComeTogether) { visit(two_that_try_again()); }

TEST(Rendezvous, SoDoThreeRanks) { visit(three_that_try_again()); }

TEST(Rendezvous, OneShrinkAfterAnotherIsNotTakenForIt) {
  visit({.scripts = {{shrink({0, 1}, 2), shrink({0, 1}, 2)}, {shrink({0, 1}, 2), shrink({0, 1}, 2)}}});
}

TEST(Rendezvous, DeathsMisleadNobody) { visit({.scripts = {{shrink({0, 1}, 3)}, {shrink({0, 1}, 3)}}, .deaths = 1}); }

TEST(Rendezvous, ListsThatDifferMakeNothing) {
  visit({.scripts = {{shrink({0, 2}, 2)}, {shrink({0, 1}, 1)}, {shrink({0, 2}, 1)}}, .meet = false});
}

TEST(Rendezvous, ASplitIsByTheWishesOfThatSplit) { visit(two_that_split_twice()); }

TEST(Rendezvous, ASplitOfThreeHasTheRightGroups) { visit({.scripts = {{split(0)}, {split(0, -1)}, {split(-1)}}}); }

// The other ranks run out of time, and go on without the late one.
TEST(Rendezvous, WhoIsLateForASplitIsInNothing) {
  visit({.scripts = {{split(0), shrink({0, 2}, 2)}, {split(0)}, {split(0), shrink({0, 2}, 1)}}, .meet = false});
}

// Between hosts, a rank may read that the leader is done with this attempt before it reads the outcome: the leader has
// then made the communicator, and has not left the rank out.
TEST(Rendezvous, WhoHasMadeTheCommunicatorHasNotTurnedAway) {
  const MembershipNotice mine{
      .call = Call::split, .stage = MembershipNotice::Stage::read, .attempt = 4, .members = {0, 1}};
  MembershipNotice leader;
  const auto turned_away = [&](auto change) {
    leader = {.call = Call::split, .stage = MembershipNotice::Stage::over, .attempt = 4, .members = {0, 1}};
    change();
    const std::vector<MembershipNotice> seen = {leader, mine};
    return gone({mine, 1, seen, mine.members}, std::vector<Rank>{0}) == 0;
  };
  EXPECT_FALSE(turned_away([] {}));
  EXPECT_FALSE(turned_away([&] { leader.attempt = 3; }));  // a notice of an earlier attempt: it may still join this one
  EXPECT_TRUE(turned_away([&] { leader.blames = 1; }));
  EXPECT_TRUE(turned_away([&] { leader.attempt = 5; }));
  EXPECT_TRUE(turned_away([&] { leader.call = Call::shrink; }));
  EXPECT_TRUE(turned_away([&] { leader.members = {0}; }));
}

// What the model finds wrong with given rules. The tests below attack its checks: each uses a wrong rule.
std::string said_of(Scenario scenario, Rules rules) {
  Model model(std::move(scenario), rules);
  try {
    model.explore();
  } catch (const std::logic_error& e) {
    return e.what();
  }
  return "";
}

TEST(Rendezvous, AttemptsThatAreCountedApartAreFound) {
  const auto stays = [](const SplitView& k) {
    const SplitAction next = next_of(k);
    return next.what == SplitAction::What::anew ? SplitAction{} : next;
  };
  EXPECT_NE(said_of(two_that_try_again(), {.next = stays}).find("never comes to the others"), std::string::npos);
}

TEST(Rendezvous, WishesThatAreReadTooEarlyAreFound) {
  const auto hurries = [](const SplitView& k) {
    const SplitAction next = next_of(k);
    const bool waits = next.what == SplitAction::What::wait && k.mine.stage == MembershipNotice::Stage::here;
    return waits && k.mine.call == Call::split ? SplitAction{SplitAction::What::read} : next;
  };
  EXPECT_NE(said_of(two_that_split_twice(), {.next = hurries}), "");
}

TEST(Rendezvous, OffersThatAreKeptWhenARankHasTurnedAwayAreFound) {
  const auto keeps = [](const SplitView&, std::span<const Rank>) { return Rank{-1}; };
  EXPECT_NE(said_of(two_that_try_again(), {.gone = keeps}).find("never comes to the others"), std::string::npos);
}

}  // namespace
}  // namespace trellis::ccl
