#include "sim/cluster/machine/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "schedule/schedule_too_large.h"
#include "sim/cluster/machine/machine_cluster.h"
#include "sim/cluster/price/price.h"
#include "sim/cluster/workload/step_price.h"
#include "sim/hardware/time/time_too_long.h"
#include "tests/sim/machine/route_between.h"
#include "tests/why.h"

namespace trellis::sim {
namespace {

const char* const shapes[] = {"torus:4x4x4",
                              "ring:7",
                              "mesh:3x5",
                              "full:6",
                              "switch:9",
                              "clos:80",
                              "fattree:4x4x4",
                              "dragonfly:2x4x9",
                              "cores:4/torus:4x4",
                              "cores:2/torus:4x4/clos:40",
                              "switch:8/ring:2/clos:4"};

// Every route leads from its source to its target, with few more links than the sum of the machine's dimensions.
TEST(Machine, EveryTwoRanksAreJoined) {
  std::vector<std::string> names(std::begin(shapes), std::end(shapes));
  for (const std::string& name : machine_names()) names.push_back(name);
  names.push_back("trn2.48xlarge x 4");
  names.push_back("trn1.32xlarge x 3");
  for (const std::string& name : names) {
    const Machine m = machine_named(name);
    std::size_t widest = 8;
    for (Rank d : m.dims()) widest += static_cast<std::size_t>(d);
    for (Rank a = 0; a < m.ranks(); a += 1 + m.ranks() / 37)
      for (Rank b = 0; b < m.ranks(); b += 1 + m.ranks() / 53) {
        const auto links = route_between(m, a, b);
        EXPECT_EQ(links.empty(), a / m.cores() == b / m.cores()) << name << ' ' << a << ' ' << b;
        EXPECT_LE(links.size(), widest) << name;
        for (ResourceId r : links) {
          EXPECT_GT(m.rate(r), 0) << name << ' ' << m.resource_name(r);
          EXPECT_EQ(m.owner(r) % m.span(r), 0) << m.resource_name(r);
        }
      }
  }
}

TEST(Machine, TorusTakesTheShortWayDimensionByDimension) {
  const Machine m = machine_named("torus:8x8");
  EXPECT_EQ(route_between(m, 0, 1).size(), 1U);
  EXPECT_EQ(route_between(m, 0, 7).size(), 1U);
  EXPECT_EQ(route_between(m, 0, 3 + 8 * 5).size(), 6U);
  EXPECT_EQ(m.resource_name(route_between(m, 0, 7)[0]), "torus x- of chip 0");
  // Of two equally short ways it takes the forward one.
  EXPECT_EQ(route_between(m, 0, 4)[0], route_between(m, 0, 1)[0]);
}

TEST(Machine, GoesRoundDeadLinks) {
  MachineSpec spec = machine_spec("torus:4x4");
  what_if(spec, "dead:0-1");
  const Machine m(spec);
  const auto links = route_between(m, 0, 1);
  ASSERT_FALSE(links.empty());
  for (ResourceId r : links) EXPECT_GT(m.rate(r), 0);
  MachineSpec alone = machine_spec("mesh:2");
  what_if(alone, "dead:0-1");
  EXPECT_EQ(why([&] { route_between(Machine(alone), 0, 1); }),
            "no way that is tried leads from rank 0 to 1 round the dead links");
}

// Routes go round a dead link of any level, also where a level joins only chips that have the same position in the
// inner levels.
TEST(Machine, GoesRoundDeadLinksOfEveryLevel) {
  for (const char* name :
       {"torus:4x4/ring:4", "mesh:4x4", "mesh:2x4x4", "ring:4/ring:3/mesh:2x2", "full:4/torus:4x4"}) {
    MachineSpec spec = machine_spec(name);
    const Machine well(spec);
    for (const char* defect : {"dead:0-1", "dead:1-0"}) what_if(spec, defect);
    const Machine ill(spec);
    for (Rank a = 0; a < ill.ranks(); ++a)
      for (Rank b = 0; b < ill.ranks(); ++b) {
        const auto usual = route_between(well, a, b), links = route_between(ill, a, b);
        const auto alive = [&](ResourceId r) { return ill.rate(r) > 0; };
        ASSERT_TRUE(std::ranges::all_of(links, alive)) << name << ' ' << a << ' ' << b;
        if (std::ranges::all_of(usual, alive)) {
          ASSERT_EQ(links, usual) << name << ' ' << a << ' ' << b;
        }
      }
  }
}

// To avoid a dead link, a mesh first takes the dimensions in another order, which is no longer than the usual one. A
// step aside takes two links more, and is for ranks that differ in one dimension alone.
TEST(Machine, AMeshTakesAnotherOrderBeforeAStepAside) {
  for (const char* name : {"mesh:4x4", "mesh:3x4x2"}) {
    const Machine well = machine_named(name);
    for (const char* defect : {"dead:0-1", "dead:9-8", "dead:5-9", "dead:7-6", "dead:10-11"}) {
      MachineSpec spec = machine_spec(name);
      what_if(spec, defect);
      const Machine ill(spec);
      for (Rank a = 0; a < ill.ranks(); ++a)
        for (Rank b = 0; b < ill.ranks(); ++b) {
          int differ = 0;
          Rank stride = 1;
          for (const Rank size : ill.dims()) {
            differ += a / stride % size != b / stride % size ? 1 : 0;
            stride *= size;
          }
          const std::size_t usual = route_between(well, a, b).size(), links = route_between(ill, a, b).size();
          if (differ != 1) {
            ASSERT_EQ(links, usual) << name << ' ' << defect << ' ' << a << ' ' << b;
          } else {
            ASSERT_LE(links, usual + 2) << name << ' ' << defect << ' ' << a << ' ' << b;
          }
        }
    }
  }
}

// Where a cluster's level joins the hosts, a rank's network interface is in that level, and not at the host's switch.
TEST(Machine, ANetworkInterfaceIsThatOfTheCluster) {
  const auto slowed = [](const char* name, Rank from, Rank to) {
    MachineSpec spec = machine_spec(name);
    const Machine well(spec);
    what_if(spec, "nic:0:0.5");
    const Machine ill(spec);
    std::vector<std::string> all;
    for (ResourceId r : route_between(well, from, to))
      if (ill.rate(r) != well.rate(r)) all.push_back(ill.resource_name(r));
    return all;
  };
  EXPECT_EQ(slowed("gpu.hgx x 2", 0, 1), std::vector<std::string>{});
  EXPECT_EQ(slowed("gpu.hgx x 2", 0, 8), std::vector<std::string>{"nic out of chip 0"});
  EXPECT_EQ(slowed("trn2.48xlarge x 2", 64, 0), std::vector<std::string>{"efa in of chip 0"});
  EXPECT_EQ(slowed("switch:4/clos:4", 0, 1), std::vector<std::string>{"switch out of chip 0"});
  MachineSpec alone = machine_spec("trn3.gen1");
  what_if(alone, "nic:0:0.5");
  EXPECT_EQ(why([&] { Machine{alone}; }), "trn3.gen1 has no network interfaces");
}

TEST(Machine, RefusesDefectsOfWhatDoesNothingAtAll) {
  for (const auto& [change, told] : {std::pair("hbm:0:0", "a memory's speed: expected more than 0"),
                                     {"straggler:0:0", "a straggler's speed: expected more than 0"}}) {
    MachineSpec spec = machine_spec("trn2.48xlarge");
    what_if(spec, change);
    EXPECT_EQ(why([&] { Machine{spec}; }), told);
  }
}

// Refuses negative times, as an event cannot happen before its cause, and times so large that their sums might
// overflow.
TEST(Machine, RefusesTimesThatNothingCanTake) {
  const auto told = [](const char* change) {
    MachineSpec spec = machine_spec("trn2.48xlarge");
    what_if(spec, change);
    return why([&] { Machine{spec}; });
  };
  EXPECT_EQ(told("semaphore.latency=0us"), "");
  EXPECT_EQ(told("semaphore.latency=-1us"), "trn2.48xlarge: semaphore.latency must be at least 0");
  EXPECT_EQ(told("neuronlink.latency=-5us"), "trn2.48xlarge: neuronlink.latency must be at least 0");
  EXPECT_EQ(told("era.2025.handshake=-5us"), "trn2.48xlarge: era.2025.handshake must be at least 0");
  EXPECT_EQ(told("neuronlink.latency=9000000s"), "neuronlink.latency is 9000000 s: expected at most 100000");
  const std::string file = "level torus wire 4x4\nwire.rate = 50 GB/s | documented | x\nwire.latency = ";
  EXPECT_EQ(why([&] { Machine(read_machine("net", file + "-500 ns | documented | x\n")); }),
            "net: wire.latency must be at least 0");
  EXPECT_EQ(why([&] { Machine(read_machine("net", file + "500 ns -500..600 | assumed | x\n")); }),
            "net: the range of wire.latency must be at least 0");
}

TEST(Machine, RefusesRatesThatCannotBeCounted) {
  MachineSpec fast = machine_spec("ring:8");
  what_if(fast, "ring.rate=1000000TB/s");
  EXPECT_EQ(why([&] { Machine{fast}; }), "ring:8: ring x+ moves 1e+18 bytes a second: expected at most 5.7e+17");
  MachineSpec slow = machine_spec("ring:8");
  what_if(slow, "slow:0-1:1e-11");
  EXPECT_EQ(why([&] { Machine{slow}; }),
            "ring:8: ring x+ of chip 0 carries nothing: expected at least a byte a second, and for a dead link a "
            "defect, as dead:0-1");
}

// A shape lists its levels from the innermost on, and only the innermost can be cores. Other shapes are refused, as
// they would be misread.
TEST(Machine, RefusesShapesThatItWouldMisread) {
  for (const char* name : {"cores:4x4/ring:8", "ring:8/cores:4", "cores:2/cores:4/ring:8", "ring:8x8"})
    EXPECT_NE(why([&] { machine_named(name); }), "") << name;
  EXPECT_EQ(machine_named("cores:4/ring:8").ranks(), 32);
  const auto told = [](const char* machine, const char* change) {
    MachineSpec spec = machine_spec(machine);
    what_if(spec, change);
    return why([&] { Machine{spec}; });
  };
  EXPECT_EQ(told("trn2.48xlarge", "cores=0"),
            "trn2.48xlarge: 0 cores, 2 to a logical core: expected at least one logical core");
  EXPECT_EQ(told("trn2.48xlarge", "logical.cores=16"),
            "trn2.48xlarge: 8 cores, 16 to a logical core: expected at least one logical core");
  EXPECT_EQ(told("trn1.32xlarge x 2", "efa.group=3"),
            "efa.group = 3: expected a divisor of the 16 chips of a host, or a multiple of them");
  EXPECT_EQ(told("trn1.32xlarge x 4", "efa.group=32"), "");
}

TEST(Machine, TheLastLeafEndsWithTheMachine) {
  MachineSpec spec = machine_spec("clos:40");
  what_if(spec, "clos.oversubscription=2");
  const Machine m(spec);
  std::string named;
  for (ResourceId r : route_between(m, 35, 0))
    if (m.span(r) > 1 && m.owner(r) == 32) named = m.resource_name(r);
  EXPECT_EQ(named, "clos level 1 out of chips 32 to 39");
}

TEST(Machine, ClustersJoinHostsByTheirInterfaces) {
  const Machine m = machine_named("trn2.48xlarge x 4");
  EXPECT_EQ(m.ranks(), 256);
  EXPECT_EQ(m.dims(), (std::vector<Rank>{4, 4, 4, 4}));
  bool interface = false;
  for (ResourceId r : route_between(m, 0, 70)) interface = interface || m.port_name(r).starts_with("efa");
  EXPECT_TRUE(interface);
}

// A level of cores has no fabric, and the levels after it keep theirs.
TEST(Machine, LinksBetweenHostsAreKnownWhereALevelOfCoresComesFirst) {
  MachineSpec spec = read_machine("m", "like trn1.32xlarge\nlevel cores core 2\nlevel torus neuronlink 4x4\n");
  spec = joined(std::move(spec), 2, "m x 2");
  for (const Machine& m : {machine_named("trn1.32xlarge x 2"), Machine(std::move(spec))}) {
    int between = 0;
    for (ResourceId r : route_between(m, 0, 32)) between += m.between_hosts(r) ? 1 : 0;
    EXPECT_EQ(between, static_cast<int>(route_between(m, 0, 32).size())) << m.name();
    for (ResourceId r : route_between(m, 0, 31)) EXPECT_FALSE(m.between_hosts(r)) << m.name();
    EXPECT_EQ(ranks_of_host(m), 32) << m.name();
  }
}

TEST(Machine, LaunchesGrowWithRanksAndCores) {
  const SoftwareOverheads host = machine_named("trn2.48xlarge").overheads("2026-host");
  EXPECT_EQ(host.launched(8), host.launch);
  EXPECT_LT(host.launched(2), host.launch);
  EXPECT_GT(host.launched(64), host.launched(16));
  const SoftwareOverheads device = machine_named("trn2.48xlarge").overheads("2026");
  EXPECT_EQ(device.launched(64), device.launched(2));
  MachineSpec single = machine_spec("trn2.48xlarge");
  const Time each = static_cast<Time>(single.figures.at("era.2026-graph.logical").value * static_cast<double>(second));
  single.figures.set("logical.cores", 1);
  EXPECT_EQ(machine_named("trn2.48xlarge").overheads("2026-graph").launch,
            Machine(std::move(single)).overheads("2026-graph").launch + each);
}

TEST(Machine, SaysWhatIsWrong) {
  for (const char* name :
       {"trn9", "torus", "torus:", "torus:4y4", "donut:4", "torus:0", "trn2.48xlarge x 0", "gpu.hgx y 2"})
    EXPECT_THROW(machine_named(name), std::invalid_argument) << name;
  for (const char* text : {"slow:0-1", "dead:0", "nic:0-1:0.5", "hbm:x:1", "foo=1", "straggler:0:-1",
                           "straggler:1.5:0.5", "dead:99999999999-1", "slow:0-1:nan", "slow:0-1:inf"}) {
    MachineSpec spec = machine_spec("trn2.48xlarge");
    EXPECT_THROW(what_if(spec, text), std::invalid_argument) << text;
  }
  EXPECT_THROW(machine_named("trn2.48xlarge").overheads("1999"), std::invalid_argument);
  for (const char* name : {"torus:20000x20000/switch:20000", "cores:2000000000/ring:4", "ring:3000000000"})
    EXPECT_THROW(machine_named(name), std::invalid_argument) << name;
  for (const char* text : {"cores=4294967298", "hbm.stacks=1000000000000", "efa.group=2147483647", "efa.group=0",
                           "hbm.rate=0GB/s", "dma.engine.rate=0GB/s", "efa.rate=1e-300GB/s"}) {
    MachineSpec spec = machine_spec("trn1.32xlarge x 4");
    what_if(spec, text);
    EXPECT_THROW(Machine{spec}, std::invalid_argument) << text;
  }
}

// A kind of fabric reads exactly the figures that it declares.
TEST(Machine, FabricsNameTheirKeys) {
  for (const auto& [name, kind] : fabric_kinds()) {
    const std::vector<Chip> dims = name == "links" ? std::vector<Chip>{32}
                                   : name == "ring" || name == "full" || name == "switch" || name == "clos"
                                       ? std::vector<Chip>{4}
                                       : std::vector<Chip>{2, 2, 2};
    std::string text;
    for (const std::string& key : kind.keys(dims.size()))
      text += fmt::format("net.{} = 2 {} | documented | x\n", key,
                          key.ends_with("rate") ? "GB/s"
                          : key == "latency"    ? "us"
                                                : "");
    const Figures figures = Figures::read(text);
    ASSERT_NO_THROW(kind.make({"net", dims, 1, &figures})) << name;
    // A torus whose axes all have rates of their own does not read net.rate, so it is read here.
    EXPECT_EQ(figures.all().contains("net.x.rate"), name == "torus" || name == "ring" || name == "mesh");
    if (figures.has("net.x.rate")) figures.rate("net.rate");
    EXPECT_NO_THROW(figures.expect_all_used(name));
  }
}

constexpr Time latency = 500 * ns;  // of the links of plain shapes

Price priced(const char* algorithm, const schedule::Request& request, const Machine& m, PriceOptions options) {
  return price(schedule::algorithm_named(algorithm), request, m, options);
}

// Links whose rates are too high to count in thousandths of a byte a second are counted in whole bytes.
TEST(MachineLimits, ARingOfFastLinksIsItsClosedForm) {
  for (const double fast : {400e12, 600e12, 1200e12, 1e17}) {
    MachineSpec spec = machine_spec("ring:8");
    spec.figures.set("ring.rate", fast);
    const double chunk = 1 << 27;
    const Price p = priced("ring", {.operation = {.in_place = true}, .dims = {8}}, Machine(spec), {.bytes = chunk * 8});
    EXPECT_EQ(p.time, 2 * 7 * (latency + transfer_time(chunk, fast))) << fast;
    EXPECT_EQ(p.busiest_name, "ring x+ of chip 0") << fast;
  }
}

// A defect may also make a link faster: the others must not become slower by that.
TEST(MachineLimits, ALinkThatADefectMakesFastSlowsNothing) {
  const auto ring = [](const char* change) {
    MachineSpec spec = machine_spec("ring:8");
    if (*change != 0) what_if(spec, change);
    return priced("ring", {.operation = {.in_place = true}, .dims = {8}}, Machine(spec), {.bytes = 1e9}).time;
  };
  const Time usual = ring("");
  for (const char* change : {"slow:0-1:1.5", "slow:0-1:23058.5", "slow:0-1:23058.6", "slow:0-1:1e6"}) {
    EXPECT_LE(ring(change), usual) << change;
    EXPECT_GT(ring(change), usual - usual / 100) << change;
  }
  EXPECT_EQ(why([&] { ring("slow:0-1:1e12"); }),
            "ring:8: ring x+ of chip 0 moves 5e+22 bytes a second: expected at most 5.7e+17");
}

// All uplinks of a leaf are one resource, and 2048 x 32 of them at 50 GB/s are faster than any one link can be. Here
// each chip sends its share over them.
TEST(MachineLimits, TheWaysUpFromALeafOfManyChipsAreCounted) {
  for (const auto& [shape, dims] : {std::pair("torus:4x16x16/clos:64", std::vector<Rank>{4, 16, 16, 64}),
                                    {"torus:8x16x16/clos:64", {8, 16, 16, 64}},
                                    {"torus:16x16x16/clos:64", {16, 16, 16, 64}}}) {
    MachineSpec spec = machine_spec(shape);
    const schedule::Request request{.dims = dims};
    const Time full = priced("torus", request, Machine(spec), {.bytes = 1 << 20}).time;
    spec.figures.set("clos.oversubscription", 4);
    const Time quarter = priced("torus", request, Machine(spec), {.bytes = 1 << 20}).time;
    EXPECT_GE(quarter, full) << shape;
    EXPECT_LT(quarter, full + full / 2) << shape;
  }
}

TEST(MachineLimits, AWayOverTooManyLinksIsRefused) {
  const Machine m = machine_named("ring:140000");
  const auto sent_to = [&](Rank peer) {
    const schedule::Request request{.operation = {.collective = schedule::Collective::send_recv, .peer = peer},
                                    .dims = {140'000}};
    return priced("direct", request, m, {.bytes = 1 << 30}).time;
  };
  EXPECT_EQ(sent_to(65'535), 65'535 * latency + transfer_time(1 << 30, 50e9));
  EXPECT_THROW(sent_to(65'536), schedule::ScheduleTooLarge);
}

// Each rank sums as many blocks as there are ranks.
TEST(MachineLimits, NoSourceOfALargeSumIsLost) {
  constexpr Rank ranks = 65'600;
  const CompiledSchedule pattern(schedule::algorithm_named("direct"),
                                 {.operation = {.collective = schedule::Collective::reduce_scatter}, .dims = {ranks}});
  const auto& moves = pattern.classes().at(0).moves;
  EXPECT_EQ(std::ranges::max(moves, {}, &Move::sources).sources, std::uint32_t{ranks});
}

// The straggler's handshake takes longer than can be counted, and so do 126 steps of a day each.
TEST(MachineLimits, ATimeThatCannotBeCountedIsRefused) {
  for (const auto& [name, change, era] :
       {std::tuple("trn2.48xlarge", "straggler:0:1e-13", "2023"), {"ring:64", "ring.latency=86400s", ""}}) {
    MachineSpec spec = machine_spec(name);
    what_if(spec, change);
    EXPECT_THROW(priced("ring", {.dims = {64}}, Machine(spec), {.bytes = 1 << 20, .era = era}), TimeTooLong) << change;
  }
}

TEST(Machine, AMillionChipsTakeNoMemory) {
  const Machine m = machine_named("torus:100x100x100");
  EXPECT_EQ(m.ranks(), 1'000'000);
  EXPECT_EQ(route_between(m, 0, 999'999).size(), 3U);
}

}  // namespace
}  // namespace trellis::sim
