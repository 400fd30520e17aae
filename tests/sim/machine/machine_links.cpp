// What the links of a fabric add up to: the ways out of a chip, the bisection, and the ways round a dead one.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/algorithms/algorithm.h"
#include "sim/cluster/machine/machine.h"
#include "sim/cluster/price/price.h"
#include "tests/sim/machine/route_between.h"
#include "tests/why.h"

namespace trellis::sim {
namespace {

// Both neighbours of a unit are the same one, so routes, what a chip can send and the bisection count one link.
TEST(MachineLinks, ADimensionOfTwoHasOneLink) {
  for (const char* name : {"ring:2", "mesh:2"}) {
    MachineSpec spec = machine_spec(name);
    const Machine well(spec);
    EXPECT_EQ(well.injection(), 50e9) << name;
    EXPECT_EQ(well.bisection().rate, 50e9) << name;
    EXPECT_EQ(route_between(well, 0, 1)[0] + 1, route_between(well, 1, 0)[0])
        << name;  // the same port of the other chip
    what_if(spec, "dead:0-1");
    EXPECT_EQ(why([&] { route_between(Machine(spec), 0, 1); }),
              "no way that is tried leads from rank 0 to 1 round the dead links");
  }
  MachineSpec square = machine_spec("torus:2x2");
  what_if(square, "dead:0-1");
  EXPECT_EQ(route_between(Machine(square), 0, 1).size(), 3U);
  EXPECT_EQ(Machine(square).injection(), 2 * 50e9);
}

// The racks of a trn3.gen2 are joined chip by chip: without its cable, a chip goes by way of another of its server.
TEST(MachineLinks, ADeadCableBetweenRacksCostsTime) {
  MachineSpec spec = machine_spec("trn3.gen2");
  const Machine well(spec);
  what_if(spec, "dead:0-288");
  const Machine ill(spec);
  EXPECT_EQ(route_between(well, 0, 288).size(), 1U);
  const auto round = route_between(ill, 0, 288);
  EXPECT_EQ(round.size(), 5U);
  EXPECT_TRUE(std::ranges::all_of(round, [&](ResourceId r) { return ill.rate(r) > 0; }));
  const auto time = [](const Machine& m) {
    const schedule::Request sent{.operation = {.collective = schedule::Collective::send_recv, .peer = 288},
                                 .dims = {m.ranks()}};
    return price(schedule::algorithm_named("direct"), sent, m, {.bytes = 1 << 20}).time;
  };
  EXPECT_GT(time(ill), time(well));
}

// Of an odd number of chips, the smaller half sends to the others, each over a link of its own.
TEST(MachineLinks, TheBisectionOfASwitchCountsWholeChips) {
  for (const auto& [name, half, part] : {std::tuple("switch:2", 1, 0.5),
                                         {"switch:3", 1, 1.0 / 3},
                                         {"switch:9", 4, 4.0 / 9},
                                         {"fattree:2x3", 2, 1.0 / 3},
                                         {"switch:8", 4, 0.5}}) {
    const Machine m = machine_named(name);
    EXPECT_EQ(m.bisection().rate, half * m.injection()) << name;
    EXPECT_DOUBLE_EQ(m.bisection().part, part) << name;
  }
}

}  // namespace
}  // namespace trellis::sim
