// Pictures of simulated machines show every link once, and stay readable for large machines.
#include "tools/topo/machine_renderings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "sim/cluster/machine/machine.h"
#include "tools/topo/machine_sketcher.h"

namespace trellis::tools {
namespace {

using sim::machine_named;

std::set<ResourceId> shown(const Sketch& s) {
  std::set<ResourceId> all;
  for (const DrawnWire& w : s.wires) all.insert(w.resources.begin(), w.resources.end());
  for (const DrawnShape& one : s.shapes) all.insert(one.inside.begin(), one.inside.end());
  all.erase(sim::no_resource);
  return all;
}

int times(const std::string& text, std::string_view words) {
  int count = 0;
  for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++count;
  return count;
}

std::set<ResourceId> existing(const sim::Machine& m) {
  std::set<ResourceId> all;
  for (ResourceId r = 0; r < m.resources(); ++r)
    if (m.owner(r) % m.span(r) == 0) all.insert(r);
  return all;
}

TEST(TopoSketch, ASmallMachineIsShownWithAllThatItHas) {
  for (const char* name : {"ring:8", "mesh:3", "torus:4x4", "torus:4x4x4", "torus:3x5", "torus:4x4/ring:3", "full:6",
                           "switch:8", "fattree:4x3", "dragonfly:2x4x9", "trn2.48xlarge", "trn2u", "trn1.32xlarge",
                           "trn2.48xlarge x 4", "gpu.hgx x 2", "cores:4/torus:2x2"}) {
    const sim::Machine m = machine_named(name);
    const std::set<ResourceId> drawn = shown(MachineSketcher(m).whole());
    for (ResourceId r : existing(m)) {
      // Open ends of a mesh, and the second link between two units that are neighbours both ways, carry nothing.
      if (std::string_view(name).starts_with("mesh")) continue;
      EXPECT_TRUE(drawn.contains(r)) << name << ": " << m.resource_name(r);
    }
    for (ResourceId r : drawn) EXPECT_LT(r, m.resources()) << name;
  }
}

TEST(TopoSketch, WhatIsDrawnLiesOnThePaper) {
  std::vector<std::string> names = sim::machine_names();
  for (const char* more : {"torus:16x32x32", "ring:1000", "clos:64", "fattree:4x8x16", "dragonfly:4x8x33", "full:100",
                           "switch:500", "torus:4x4/full:4/clos:64", "torus:2x2x2x2", "trn2.48xlarge x 64"})
    names.emplace_back(more);
  for (const std::string& name : names) {
    const Sketch s = MachineSketcher(machine_named(name)).whole();
    EXPECT_LT(s.size.x, 4000) << name;
    EXPECT_LT(s.size.y, 3000) << name;
    EXPECT_LT(s.shapes.size(), 1500U) << name;
    for (const DrawnShape& one : s.shapes) {
      EXPECT_GE(std::min(one.at.x, one.at.y), 0) << name << " " << one.label;
      EXPECT_LE(one.at.x + one.size.x, s.size.x + 1) << name << " " << one.label;
      EXPECT_LE(one.at.y + one.size.y, s.size.y + 1) << name << " " << one.label;
    }
    for (const DrawnWire& w : s.wires)
      for (const Point& p : w.points) {
        EXPECT_GE(std::min(p.x, p.y), -1) << name;
        EXPECT_LE(p.x, s.size.x + 1) << name;
        EXPECT_LE(p.y, s.size.y + 1) << name;
      }
  }
}

TEST(TopoSketch, Kept) {
  EXPECT_EQ(kept(3, 4), (std::vector<Chip>{0, 1, 2}));
  EXPECT_EQ(kept(9, 4), (std::vector<Chip>{0, 1, 2, 8}));
}

TEST(TopoSimPicture, UseColoursLinksAndIsSaid) {
  const sim::Machine m = machine_named("ring:8");
  const std::string svg = sim_topo_picture(m, [](ResourceId r) { return r == 3 ? 0.83 : 0; });
  EXPECT_NE(svg.find("ring x+ of chip 3: 50.0 GB/s, 83% used"), std::string::npos);
  EXPECT_EQ(times(svg, "class=\"wire u5\""), 1);
  EXPECT_EQ(times(svg, "class=\"wire u0\""), 7);
}

TEST(TopoSimPicture, ADeadLinkIsSeen) {
  sim::MachineSpec spec = sim::machine_spec("torus:4x4");
  sim::what_if(spec, "dead:0-1");
  const std::string svg = sim_topo_picture(sim::Machine(spec));
  EXPECT_NE(svg.find("wire dead"), std::string::npos);
  EXPECT_NE(svg.find("torus x+ of chip 0: dead"), std::string::npos);
}

TEST(TopoSimText, SaysLinksAndWhereFiguresComeFrom) {
  const std::string text = sim_topo_text(machine_named("trn2.48xlarge x 4"));
  EXPECT_EQ(text.substr(0, text.find('\n')), "trn2.48xlarge x 4: 256 ranks, 4 a chip, 64 chips (trn2)");
  for (const char* words : {"neuronlink x+", "19.3 GB/s", "documented", "net.rdma.one_device_bw.trn2", "bisection"})
    EXPECT_NE(text.find(words), std::string::npos) << words;
  const auto json = nlohmann::json::parse(sim_topo_json(machine_named("torus:4x4")));
  EXPECT_EQ(json["ranks"], 16);
  EXPECT_EQ(json["links"].size(), 4U);
  EXPECT_EQ(json["bisection_Bps"], 8 * 50e9);
}

}  // namespace
}  // namespace trellis::tools
