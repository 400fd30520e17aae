#include "sim/cluster/choose/pricer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "schedule/proof/verify.h"
#include "sim/cluster/tune/best_config_range.h"
#include "sim/cluster/tune/search.h"
#include "sim/cluster/tune/sweep.h"
#include "sim/cluster/tune/synthesis.h"

namespace trellis::sim {
namespace {

using schedule::Collective;

TEST(Tuner, WaysReadBackAsTheyWereWritten) {
  for (const AlgorithmConfig& config : {AlgorithmConfig{"ring"}, AlgorithmConfig{"ring", 2, 4},
                                        AlgorithmConfig{"hierarchical", 1, 8, {"mesh", "ring"}, {4, 16}},
                                        AlgorithmConfig{"hierarchical", 2, 1, {"torus:2", "direct"}}})
    EXPECT_EQ(algorithm_config_named(text_of(config)), config) << text_of(config);
  for (const char* wrong : {"", "*2", "ring*0", "ring/x", "ring*"})
    EXPECT_THROW(algorithm_config_named(wrong), std::invalid_argument) << wrong;
}

TEST(Tuner, GroupsAreWholeOrAcross) {
  const Machine machine = machine_named("cores:2/torus:4x4/clos:3");
  std::set<Rank> sizes;
  for (const RankGroup& g : groups_of(machine)) {
    sizes.insert(g.ranks());
    if (g.members.empty()) continue;
    ASSERT_EQ(std::ssize(g.members), g.ranks()) << g.name;
    const Rank stride = g.members[1] - g.members[0];
    EXPECT_EQ(g.across, stride > 1) << g.name;
    EXPECT_LT(g.members.back(), machine.ranks()) << g.name;
  }
  EXPECT_EQ(sizes, (std::set<Rank>{2, 3, 8, 12, 32, 48, 96}));
  EXPECT_EQ(group_named(machine, "across-3").members, (std::vector<Rank>{0, 32, 64}));
  EXPECT_THROW(group_named(machine, "across-5"), std::invalid_argument);
  EXPECT_EQ(first_ranks(machine, 16).dims, (std::vector<Rank>{2, 4, 2}));
  EXPECT_EQ(first_ranks(machine, 6).ranks(), 6);
  EXPECT_EQ(first_in_a_row(machine, 6).dims, (std::vector<Rank>{6}));
  EXPECT_EQ(first_in_a_row(machine, 6).members, first_ranks(machine, 6).members);
  EXPECT_EQ(first_in_a_row(machine, 0).dims, (std::vector<Rank>{machine.ranks()}));
  EXPECT_TRUE(first_in_a_row(machine, 0).members.empty());
  EXPECT_THROW(first_in_a_row(machine, -1), std::invalid_argument);
  EXPECT_THROW(first_in_a_row(machine, machine.ranks() + 1), std::invalid_argument);
  EXPECT_THROW(first_ranks(machine, 97), std::invalid_argument);
}

TEST(Tuner, PriceIsTheOneOfPrice) {
  const Machine machine = machine_named("torus:4x4");
  Pricer pricer(machine, groups_of(machine).front(), {});
  const AlgorithmConfig config{"ring", 2};
  for (const double bytes : {8.0, 1e3, 1e6, 1e8, 1e6}) {  // one size twice; 8 bytes are fewer elements than chunks
    const auto request = pricer.request(config);
    const Price plain = price(schedule::algorithm_named("ring"), request, machine, {.bytes = bytes});
    EXPECT_EQ(pricer.price(config, bytes).time, plain.time) << bytes;
  }
}

TEST(Tuner, RegionsChangeOnlyForWhatIsWorthIt) {
  const AlgorithmConfig a{"a"}, a2{"a", 2}, b{"b"};
  const std::vector<ConfigCost> costs = {{a, 8, 100},   {b, 8, 200},  {a, 16, 101}, {b, 16, 100}, {a, 32, 200},
                                         {a2, 32, 150}, {b, 32, 170}, {b, 64, 150}, {a, 64, 300}, {a2, 64, 290}};
  const auto by_way = regions_of(costs, false);
  ASSERT_EQ(by_way.size(), 3U);
  EXPECT_EQ(by_way[0].config, a);
  EXPECT_EQ(by_way[0].from, 0);
  EXPECT_EQ(by_way[1].config, a2);
  EXPECT_EQ(by_way[1].from, 32);
  EXPECT_EQ(by_way[2].config, b);
  const auto by_family = regions_of(costs, true);
  ASSERT_EQ(by_family.size(), 2U);
  EXPECT_EQ(by_family[1].from, 64);
}

SweepSpec small_sweep(const Machine& machine) {
  SweepSpec s{
      groups_of(machine).front(), {.operation = {.collective = Collective::all_gather}}, {}, {64, 4096, 1 << 20}};
  s.configs = configs_of(Pricer(machine, s.group, s.settings), {}, {1, 2}, {1});
  return s;
}

std::set<std::string> lines(const std::vector<ConfigCost>& costs, const SweepSpec& s) {
  std::set<std::string> all;
  for (const ConfigCost& c : costs) all.insert(point_line("0", s, c));
  return all;
}

TEST(SweepSpec, TwoThreadsFindWhatOneDoes) {
  const Machine machine = machine_named("cores:2/ring:4");
  const SweepSpec s = small_sweep(machine);
  const auto one = sweep(machine, s, {.threads = 1}), two = sweep(machine, s, {.threads = 2});
  EXPECT_EQ(one.size(), s.points());
  EXPECT_EQ(lines(one, s), lines(two, s));
}

TEST(SweepSpec, GoesOnWhereItWasStopped) {
  const Machine machine = machine_named("cores:2/ring:4");
  const SweepSpec s = small_sweep(machine);
  const std::string print = fingerprint(machine.spec(), "");
  std::string file;
  std::atomic<int> left = 7;
  const auto part = sweep(machine, s,
                          {.stopped = [&] { return left <= 0; },
                           .found = [&](const ConfigCost& c) { --left, file += point_line(print, s, c); }});
  EXPECT_EQ(part.size(), 7U);
  file += point_line(print, s, {s.configs.back(), 64, 1}).substr(0, 30);  // cut off
  const auto known = read_points(file, print, s);
  EXPECT_EQ(known.size(), 7U);
  std::size_t fresh = 0;
  const auto all = sweep(machine, s, {.known = known, .found = [&](const ConfigCost&) { ++fresh; }});
  EXPECT_EQ(fresh, s.points() - 7);
  EXPECT_EQ(lines(all, s), lines(sweep(machine, s, {}), s));
}

TEST(SweepSpec, PointsOfAnotherMachineOrEraAreNotTaken) {
  MachineSpec spec = machine_spec("ring:4");
  const std::string before = fingerprint(spec, "");
  what_if(spec, "ring.rate=60 GB/s");
  const std::string other = fingerprint(spec, "");
  EXPECT_NE(before, other);
  what_if(spec, "slow:0-1:0.5");
  EXPECT_NE(fingerprint(spec, ""), other);
  EXPECT_NE(fingerprint(machine_spec("trn2.48xlarge"), "2023"), fingerprint(machine_spec("trn2.48xlarge"), "2025"));
  const SweepSpec s = small_sweep(machine_named("ring:4"));
  const std::string line = point_line(before, s, {s.configs.front(), 64, 5});
  EXPECT_EQ(read_points(line, before, s).size(), 1U);
  EXPECT_TRUE(read_points(line, other, s).empty());
}

// A config without dims takes those of the group, so a point of a group with other dims is not taken; nor is one of
// another root or peer.
TEST(SweepSpec, PointsOfAnotherShapeOrRootAreNotTaken) {
  const Machine machine = machine_named("torus:4x4");
  const SweepSpec s = small_sweep(machine);
  const std::string print = fingerprint(machine.spec(), ""), line = point_line(print, s, {{"torus"}, 64, 5});
  EXPECT_EQ(read_points(line, print, s).size(), 1U);
  SweepSpec row = s;
  row.group.dims = {16};
  EXPECT_TRUE(read_points(line, print, row).empty());
  SweepSpec rooted = s;
  rooted.settings.operation.root = 1;
  EXPECT_TRUE(read_points(line, print, rooted).empty());
}

TEST(SweepSpec, AnErrorOfOneThreadIsThrown) {
  const Machine machine = machine_named("ring:4");
  SweepSpec s = small_sweep(machine);
  s.settings.era = "of nobody";
  EXPECT_THROW(sweep(machine, s, {.threads = 2}), std::invalid_argument);
}

TEST(SearchOptions, ShapesKeepTheOrderAndTheProduct) {
  const auto shapes = shapes_of({4, 3});
  EXPECT_EQ(shapes.size(), 4U);
  for (const auto& shape : shapes) {
    Rank product = 1;
    for (const Rank dim : shape) product *= dim;
    EXPECT_EQ(product, 12);
  }
  EXPECT_EQ(shapes_of({1}), (std::vector<std::vector<Rank>>{{1}}));
}

TEST(SearchOptions, CompositionsAreProvedRight) {
  const Machine machine = machine_named("cores:2/ring:4");
  const Pricer pricer(machine, groups_of(machine).front(), {.operation = {.collective = Collective::all_reduce}});
  const auto configs = compositions(pricer, {"ring", "direct", "mesh"}, 3);
  EXPECT_GT(configs.size(), 8U);
  for (const AlgorithmConfig& config : configs) {
    const auto report = schedule::verify(make(schedule::algorithm_named(config.algorithm), pricer.request(config)));
    EXPECT_TRUE(report.ok()) << text_of(config) << ": " << report.text();
  }
}

// A config that the sweep gives up is never one of the fastest.
TEST(SearchOptions, ASweepFindsTheFastestWithoutPricingAll) {
  MachineSpec spec = machine_spec("torus:4x4");
  what_if(spec, "dead:0-1");
  const Machine machine(spec);
  const Pricer pricer(machine, groups_of(machine).front(), {});
  SweepSpec s{pricer.group(), {}, compositions(pricer, {"ring", "direct", "mesh", "rdh", "bine"}, 3), {1 << 24}};
  const auto fastest_times = [&](const SweepControl& control) {
    std::vector<Time> times;
    for (const ConfigCost& c : sweep(machine, s, control)) times.push_back(c.time);
    std::ranges::sort(times);
    times.resize(std::min<std::size_t>(times.size(), 4));
    return times;
  };
  const auto all = fastest_times({});
  ASSERT_GT(s.configs.size(), 20U);
  s.wanted = 4;
  int given_up = 0;
  EXPECT_EQ(fastest_times({.given_up = [&](const ConfigCost&) { ++given_up; }}), all);
  EXPECT_GT(given_up, 0);
  EXPECT_EQ(fastest_times({.threads = 2}), all);
  s.limit = all[1];
  EXPECT_EQ(fastest_times({}).front(), all.front());
}

// A stopped search goes on from its file: configs that were priced or given up are not priced again.
TEST(SearchOptions, GoesOnWhereItWasStopped) {
  const Machine machine = machine_named("torus:4x2");
  const RankGroup group = groups_of(machine).front();
  const SearchOptions how{.algorithms = {"ring", "direct", "mesh"}, .most_levels = 2, .finalists = 2, .shown = 3};
  const double bytes = 1 << 22;
  const SweepSpec same{.group = group};
  std::string file;
  int left = 60, looked_at = 0;
  const auto look = [&](SweepControl control) {
    control.known = read_points(file, "0", same), control.slower = read_slower(file, "0", same);
    looked_at = 0;
    control.found = [&](const ConfigCost& c) { ++looked_at, --left, file += point_line("0", same, c); };
    control.given_up = [&](const ConfigCost& c) { ++looked_at, --left, file += slower_line("0", same, c); };
    std::string text;
    const SearchResult result = search(machine, group, {}, bytes, how, control);
    for (const ConfigCost& c : result.found) text += fmt::format("{} {}\n", text_of(c.config), c.time);
    for (const ConfigCost& c : result.fixed) text += fmt::format("{} {}\n", text_of(c.config), c.time);
    for (const SynthesisResult& s : syntheses(machine, group, {}, bytes, control))
      text += fmt::format("{} {}\n", text_of(s.how), s.time);
    return fmt::format("{}{} tried", text, result.tried);
  };
  look({.stopped = [&] { return left <= 0; }});
  EXPECT_GE(looked_at, 60);
  const std::string resumed = look({});
  const int rest = looked_at;
  EXPECT_EQ(look({}), resumed);
  EXPECT_EQ(looked_at, 0);
  file.clear();
  EXPECT_EQ(look({}), resumed);
  EXPECT_LT(rest, looked_at);
  EXPECT_FALSE(read_slower(file, "0", same).empty());
  EXPECT_NE(file.find(" synthesised order="), std::string::npos);
}

// A search can be stopped among the fixed configs, in the choice, and while it makes or prices compositions.
TEST(SearchOptions, EndsSoonAfterItIsToldTo) {
  const Machine machine(machine_spec("trn1.32xlarge"));
  std::size_t most_fixed = 0;
  for (const int patience : {0, 1, 10, 50, 200, 1000}) {
    std::atomic<int> polls = 0;
    const auto result = search(machine, groups_of(machine).front(), {}, 1 << 20, {.most_levels = 2},
                               {.threads = 2, .stopped = [&] { return ++polls > patience; }});
    EXPECT_LE(polls, patience + 10) << patience;
    most_fixed = std::max(most_fixed, result.fixed.size());
  }
  EXPECT_GT(most_fixed, 0u) << "what was priced is given";
}

// The fixed configs, to which gains are relative, include the one that `trellis sim` chooses, although its shape is not
// the group's.
TEST(SearchOptions, HasWhatSimChoosesAmongTheFixed) {
  for (const char* name : {"full:4/clos:2", "torus:4x2"}) {
    PricingSession priced(machine_spec(name));
    const Machine& machine = priced.machine();
    const CollectiveAnswer chosen =
        answer({.group = first_in_a_row(machine, 0), .bytes = 1 << 26, .interval = false}, priced);
    const auto result = search(machine, groups_of(machine).front(), {}, 1 << 26,
                               {.algorithms = {"ring"}, .most_levels = 2, .most_moves = 1}, {});
    ASSERT_FALSE(result.fixed.empty());
    EXPECT_LE(result.fixed.front().time, chosen.price.time) << name;
  }
}

TEST(SearchOptions, TheMostPromisingAreTriedFirst) {
  const Machine machine(machine_spec("torus:4x4"));
  const RankGroup group = groups_of(machine).front();
  const SearchOptions all{.algorithms = {"ring", "direct", "mesh"}, .most_levels = 2, .channels = {1}, .segments = {1}};
  SearchOptions few = all;
  few.most_moves = 20'000;
  const auto everything = search(machine, group, {}, 1 << 24, all, {}),
             part = search(machine, group, {}, 1 << 24, few, {});
  EXPECT_EQ(everything.untried, 0U);
  EXPECT_GT(part.untried, 0U);
  EXPECT_LT(part.tried, everything.tried);
  EXPECT_GE(part.found.front().time, everything.found.front().time);
}

// Links between hosts are slow, so few bytes should cross them.
TEST(SearchOptions, AHierarchyIsFoundWhereOneIsDue) {
  MachineSpec spec = machine_spec("full:4/clos:4");
  what_if(spec, "clos.rate=5 GB/s");
  const Machine machine(spec);
  const auto result =
      search(machine, groups_of(machine).front(), {.operation = {.collective = Collective::all_gather}}, 1 << 26,
             {.most_levels = 2, .finalists = 4, .channels = {1}, .segments = {1, 4}}, {.threads = 2});
  ASSERT_FALSE(result.found.empty());
  ASSERT_FALSE(result.fixed.empty());
  EXPECT_TRUE(std::ranges::is_sorted(result.found, {}, &ConfigCost::time));
  EXPECT_LE(result.found.front().time, result.fixed.front().time);
}

}  // namespace
}  // namespace trellis::sim
