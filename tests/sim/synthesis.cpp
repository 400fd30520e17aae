#include "sim/cluster/tune/synthesis.h"

#include <gtest/gtest.h>

#include "schedule/formats/text.h"
#include "schedule/proof/verify.h"
#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/tune/synthesis_graph.h"

namespace trellis::sim {
namespace {

using enum schedule::Collective;

Machine changed(const char* name, std::initializer_list<const char*> changes) {
  MachineSpec spec = machine_spec(name);
  for (const char* change : changes) what_if(spec, change);
  return Machine(spec);
}

RankGroup all_of(const Machine& machine) { return groups_of(machine).front(); }

TEST(SynthesisOptions, EdgesAreThoseThatPassNoOtherRank) {
  const auto edges = [](const Machine& m) { return link_graph(m, all_of(m), "", false).edges.size(); };
  EXPECT_EQ(edges(machine_named("ring:6")), 12U);
  EXPECT_EQ(edges(machine_named("torus:4x4")), 64U);
  EXPECT_EQ(edges(machine_named("switch:5")), 20U);
  EXPECT_EQ(edges(machine_named("cores:2/ring:4")), 2U * 4 + 4 * 8);  // within chips, and from either core to either
  EXPECT_EQ(edges(changed("ring:6", {"dead:0-1"})), 11U);
  const Machine cluster = machine_named("ring:4/clos:2");
  for (const Edge& e : link_graph(cluster, all_of(cluster), "", false).edges)
    EXPECT_TRUE(e.from / 4 != e.to / 4 || e.from % 4 == (e.to + 1) % 4 || e.to % 4 == (e.from + 1) % 4);
}

TEST(SynthesisOptions, IsProvedRightAndReadsBack) {
  const Machine machines[] = {machine_named("torus:3x2"),
                              changed("torus:4x4", {"dead:0-1", "slow:5-6:0.3"}),
                              machine_named("cores:2/ring:4"),
                              machine_named("ring:2/clos:3"),
                              changed("switch:5", {"straggler:2:0.5"}),
                              machine_named("ring:2")};
  for (const Machine& machine : machines)
    for (const auto collective : {all_gather, reduce_scatter, all_reduce, broadcast, reduce})
      for (const SynthesisOptions how : {SynthesisOptions{}, SynthesisOptions{3, 1}, SynthesisOptions{4, 0, 7}})
        for (const bool in_place : {false, true}) {
          const Pricer::Settings settings{.operation = {.collective = collective,
                                                        .root = collective == broadcast ? 1 : 0,
                                                        .peer = last_rank,
                                                        .in_place = in_place}};
          const auto made = synthesised(machine, all_of(machine), settings, 1e6, how);
          const auto report = schedule::verify(made);
          EXPECT_TRUE(report.ok()) << machine.name() << " " << name(collective) << ": " << report.text();
          EXPECT_EQ(schedule::print(schedule::parse(schedule::print(made))), schedule::print(made));
          EXPECT_LT(price(made, machine, {.bytes = 1e6}).time, forever);
        }
}

TEST(SynthesisOptions, AskedTwiceItIsTheSame) {
  const Machine machine = machine_named("torus:4x4");
  const auto once = [&] {
    return schedule::print(
        synthesised(machine, all_of(machine), {.operation = {.collective = all_gather}}, 1e6, {.pieces = 2}));
  };
  EXPECT_EQ(once(), once());
  EXPECT_THROW(synthesised(machine, all_of(machine), {.operation = {.collective = all_to_all}}, 1e6, {}),
               std::invalid_argument);
  EXPECT_THROW(synthesised(machine, all_of(machine), {}, 1e6, {.pieces = 0}), std::invalid_argument);
}

// On ideal links, the bytes that every rank must receive bound the time; the best synthesised schedule comes near that.
TEST(SynthesisOptions, ComesNearTheBoundOnATorus) {
  const Machine machine = machine_named("torus:4x4");
  const auto all = syntheses(machine, all_of(machine), {.operation = {.collective = all_gather}}, 1e8, {});
  ASSERT_FALSE(all.empty());
  Pricer pricer(machine, all_of(machine), {.operation = {.collective = all_gather}});
  const LowerBounds bounds = pricer.price({"ring"}, 1e8).bounds;
  EXPECT_GE(all.front().time, bounds.most());
  EXPECT_LT(static_cast<double>(all.front().time), 1.25 * static_cast<double>(bounds.most()));
}

// Regular algorithms suffer most from a dead link: two routes share another link, and every step waits for that.
TEST(SynthesisOptions, BeatsTheAlgorithmsWhereALinkIsDead) {
  const Machine machine = changed("torus:4x4", {"dead:0-1", "dead:1-0"});
  for (const auto collective : {all_gather, all_reduce}) {
    Pricer pricer(machine, all_of(machine), {.operation = {.collective = collective, .peer = last_rank}});
    const auto fixed = fastest(pricer, usual_configs(pricer, 64e6), 64e6);
    const auto made =
        syntheses(machine, all_of(machine), {.operation = {.collective = collective, .peer = last_rank}}, 64e6, {});
    ASSERT_TRUE(fixed.has_value());
    ASSERT_FALSE(made.empty());
    EXPECT_LT(static_cast<double>(made.front().time), 0.9 * static_cast<double>(fixed->time))
        << name(collective) << " " << text_of(fixed->config) << " " << text_of(made.front().how);
  }
}

}  // namespace
}  // namespace trellis::sim
