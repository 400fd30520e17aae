#include "sim/cluster/machine/import/import.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <system_error>

#include "sim/cluster/machine/import/machine_argument.h"
#include "sim/cluster/machine/machine_cluster.h"
#include "tests/folder.h"
#include "tests/sim/machine/route_between.h"
#include "tests/why.h"

namespace trellis::sim {
namespace {

std::string fault(std::string_view text) {
  return why([&] { Machine machine(import_machine("net", text)); });
}

Time latency(const Machine& m, Rank from, Rank to) {
  Time sum = 0;
  for (ResourceId r : route_between(m, from, to)) sum += m.latency(r);
  return sum;
}

double rate(const Machine& m, Rank from, Rank to) {
  const std::vector<ResourceId> way = route_between(m, from, to);
  double least = m.rate(way.at(0));
  for (ResourceId r : way) least = std::min(least, m.rate(r));
  return least;
}

TEST(TypedMachine, IsANameAShapeOrAFile) {
  const Folder folder;
  const std::string path = folder.put("rack.machine", "");
  EXPECT_EQ(machine_file("trn2.48xlarge"), std::nullopt);
  EXPECT_EQ(machine_file("trn2.48xlarge x 4"), std::nullopt);
  EXPECT_EQ(machine_file("cores:4/torus:4x4/clos:16"), std::nullopt);
  EXPECT_EQ(machine_file(path), path);
  EXPECT_EQ(machine_file(path + " x 4"), path);
  EXPECT_EQ(machine_file("absent.machine x 4"), "absent.machine");
  EXPECT_EQ(Machine(typed_machine("trn2.48xlarge x 2")).ranks(), 128);
  EXPECT_EQ(typed_machine("torus:4x4").levels.size(), 1u);
}

TEST(TypedMachine, AFileIsReadAndItsErrorsNameIt) {
  const Folder folder;
  const std::string path =
      folder.put("net.yml", "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
  EXPECT_EQ(Machine(typed_machine(path)).ranks(), 8);
  EXPECT_NE(why([&] { typed_machine(path + " x 2"); }).find("cluster"), std::string::npos);
  EXPECT_THROW(typed_machine(folder.path() / "absent.yml"), std::system_error);
  EXPECT_THROW(typed_machine("trn2.48xlrage"), std::invalid_argument);
  EXPECT_THROW(typed_machine("torus:4x4", {"no.such=1"}), std::invalid_argument);
}

TEST(ImportAstra, GigabytesArePowersOfTwo) {
  const Machine m(import_machine("net",
                                 "# two dimensions\n"
                                 "topology: [ Switch, Ring ]  # Ring, Switch\n"
                                 "npus_count: [ 8, 4 ]\n"
                                 "bandwidth: [ 400, 50.0 ]  # GB/s\n"
                                 "latency: [ 936.25, 1000 ]\n"));
  EXPECT_EQ(m.dims(), (std::vector<Rank>{8, 4}));
  EXPECT_EQ(rate(m, 0, 1), 400.0 * (1 << 30));
  EXPECT_EQ(rate(m, 0, 8), 50.0 * (1 << 30));
  EXPECT_EQ(latency(m, 0, 1), 2 * 936'250);
  EXPECT_EQ(latency(m, 0, 8), 1'000'000);
}

TEST(ImportAstra, Faults) {
  const std::string rest = "\nnpus_count: [ 8 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n";
  EXPECT_EQ(fault("topology: [ Ring ]" + rest), "");
  EXPECT_EQ(fault("topology: [ Mesh ]" + rest), "net: topology 'Mesh': expected Ring, FullyConnected or Switch");
  EXPECT_EQ(fault("topology: [ Ring, Ring ]" + rest), "net: npus_count of 1 dimensions, topology of 2");
  EXPECT_EQ(fault("topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ tbd ]\nlatency: [ 5 ]\n"),
            "net: 'tbd' as bandwidth: expected a number above 0");
  EXPECT_EQ(fault("topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 5 ]\n"),
            "net: expected a line 'latency: [ ... ]'");
  EXPECT_EQ(fault("topology: [ Ring ]\nnpus: [ 8 ]" + rest),
            "net: line 2: 'npus': expected topology, npus_count, bandwidth or latency");
}

std::string platform(const std::string& attributes) {
  return "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"simgrid.dtd\"><platform version=\"4.1\"><zone id=\"w\" "
         "routing=\"Full\"><cluster id=\"c\" prefix=\"n-\" suffix=\"\" speed=\"1Gf\" " +
         attributes + "/></zone></platform>";
}

TEST(ImportOwn, Faults) {
  const std::string wire = "level torus wire 4x4\nwire.rate = 50 GB/s 40..60 | assumed | mine\n";
  const std::string whole = wire + "wire.latency = 1 us 0.5..2 | assumed | mine\n";
  EXPECT_EQ(fault(whole), "");
  EXPECT_EQ(fault(""), "net: no fabric: expected a line `level KIND NAME DIMS`, as in `level torus wire 4x4`");
  EXPECT_EQ(fault("# a torus\nlevel torus wire 4xx4\n"), "machine net: line 2: '4xx4': expected sizes like 8 or 4x4");
  EXPECT_EQ(fault(whole + "level ring wire 2\n"), "machine net: line 4: a level called 'wire' was there before");
  EXPECT_EQ(fault("level torus wire\n"), "machine net: line 1: 'level torus wire': expected level KIND NAME DIMS");
  EXPECT_TRUE(
      fault("like trn9\n").starts_with("machine net: line 1: no 'trn9' among the machines: there are eras, gpu"));
  EXPECT_EQ(fault(wire),
            "the figure 'wire.latency' is missing: expected a line `wire.latency = VALUE | MARK | SOURCE`");
  EXPECT_THROW(Machine(import_machine("net", "chip trn2\n" + whole)).overheads(""), std::invalid_argument);
  EXPECT_EQ(fault(whole + "level ring far 2  # two = 2\nfar.rate = 1 GB/s | documented | x\nfar.latency = 1 us | "
                          "documented | x\n"),
            "");
  EXPECT_EQ(fault("like trn2.48xlarge  # a=b\n"), "");
  const std::string last = ": expected the last level, of the same kind";
  for (const std::string& both : {whole + "cluster clos wire\n", "cluster clos wire\n" + whole})
    EXPECT_EQ(fault(both), "machine net: a level and the cluster are both called 'wire'" + last);
  const std::string idle = "level ring wire 4\nwire.rate = 0 GB/s 0..1 | assumed | mine\n";
  EXPECT_NE(fault(idle + "wire.latency = 1 us 0.5..2 | assumed | mine\n").find("wire x+ carries nothing"),
            std::string::npos);
}

// A file may describe a whole cluster, whose last level is the machine's own `cluster`.
TEST(ImportOwn, ItsLastLevelMayBeItsCluster) {
  const std::string trn2 = "like trn2.48xlarge\nlevel torus neuronlink 4x4\nlevel clos efa 8\n";
  const std::string gpu = "like gpu.hgx\nlevel switch nvlink 8\nlevel clos nic 4\n";
  for (const auto& [text, usual] : {std::pair(trn2, "trn2.48xlarge x 8"), {gpu, "gpu.hgx x 4"}}) {
    MachineSpec spec = import_machine("whole", text);
    const Machine whole(spec), joint = machine_named(usual);
    what_if(spec, "nic:0:0.5");
    const Machine slow(spec);
    ASSERT_EQ(whole.dims(), joint.dims());
    const Rank last = whole.ranks() - 1;
    const std::vector<ResourceId> found = route_between(whole, 0, last);
    EXPECT_EQ(found, route_between(joint, 0, last));
    for (const ResourceId r : found) {
      EXPECT_EQ(whole.rate(r), joint.rate(r));
      EXPECT_EQ(whole.between_hosts(r), joint.between_hosts(r));
    }
    EXPECT_LT(rate(slow, 0, last), rate(whole, 0, last));
    EXPECT_EQ(why([&] { joined(spec, 2, "whole x 2"); }),
              fmt::format("whole is not joined to others: its level '{}' is its cluster", spec.cluster.name));
  }
  EXPECT_EQ(fault("like gpu.hgx\nlevel clos nic 4\nlevel switch nvlink 8\n"),
            "machine net: a level and the cluster are both called 'nic': expected the last level, of the same kind");
}

// The error has the key's line in the file, whether a chip's figures come before it or not.
TEST(ImportOwn, AKeyThatNothingAsksForIsRefused) {
  const std::string whole =
      "level torus wire 4x4\ncluster clos net\nwire.rate = 50 GB/s | documented | x\nwire.latency = 1 us | documented "
      "| x\nwire.y.rate = 9 GB/s | documented | x\nnet.rate = 9 GB/s | documented | x\nnet.host.rate = 5 GB/s | "
      "documented | x\nnet.radix = 8 | documented | x\nnet.latency = 1 us | documented | x\n";
  EXPECT_EQ(fault(whole), "");
  const auto added = [&](const std::string& before, const std::string& key) {
    return fault(before + whole + key + " = 1 us | documented | x\n");
  };
  const std::string nothing = "no machine like this asks for a figure ";
  EXPECT_EQ(added("", "wire.lattency"),
            "machine net: line 10: " + nothing + "'wire.lattency': did you mean 'wire.latency'?");
  EXPECT_EQ(added("chip trn2\nera 2025\n", "dma.stat"),
            "machine net: line 12: " + nothing + "'dma.stat': did you mean 'dma.start'?");
  EXPECT_EQ(added("", "dma.engine.rate"),
            "machine net: line 10: " + nothing +
                "'dma.engine.rate': expected one of its levels, its cluster, its chip or an era");
  EXPECT_EQ(added("chip trn2\n", "dma.start"), "");
  EXPECT_EQ(added("", "era.ours.launch"), "");
  EXPECT_EQ(added("", "era.ours.lunch"),
            "machine net: line 10: " + nothing + "'era.ours.lunch': did you mean 'era.ours.launch'?");
  EXPECT_NE(added("", "wire.z.rate").find("did you mean 'wire."), std::string::npos);  // the torus has only x and y
  EXPECT_EQ(fault("like trn2.48xlarge\nefa.rate = 9 GB/s | documented | x\n"), "");
  EXPECT_EQ(fault("like trn2.48xlarge\n# more\nefa.rte = 9 GB/s | documented | x\n"),
            "machine net: line 3: " + nothing + "'efa.rte': did you mean 'efa.rate'?");
  EXPECT_EQ(fault("chip trn2\nlevel ring wire 4\nwire.rate = fast | documented | x\n"),
            "machine net: line 3: 'fast' is not a finite number");
}

TEST(ImportSimgrid, Clusters) {
  const std::string links = "bw=\"125MBps\" lat=\"50us\" ";
  const Machine torus(import_machine("p", platform(links + "topology='TORUS' topo_parameters='3,2,2' radical='0-11'")));
  EXPECT_EQ(torus.dims(), (std::vector<Rank>{3, 2, 2}));
  EXPECT_EQ(rate(torus, 0, 3), 125e6);
  EXPECT_EQ(latency(torus, 0, 4), 2 * 50 * us);
  const Machine flat(import_machine("p", platform(links + "radical='0-7,9'")));
  EXPECT_EQ(flat.ranks(), 9);
  EXPECT_EQ(latency(flat, 0, 8), 100 * us);
  const Machine tree(
      import_machine("p", platform(links + "topology='FAT_TREE' topo_parameters='2;4,4;1,2;1,2' radical='0-15'")));
  EXPECT_EQ(tree.ranks(), 16);
  EXPECT_EQ(latency(tree, 0, 15), 200 * us);
  const Machine fly(
      import_machine("p", platform(links + "topology='DRAGONFLY' topo_parameters='3,2;1,1;5,1;2' radical='0-29'")));
  EXPECT_EQ(fly.ranks(), 30);
  EXPECT_EQ(rate(fly, 0, 29), 125e6);
}

TEST(ImportSimgrid, Faults) {
  const std::string links = "bw=\"125MBps\" lat=\"50us\" ";
  EXPECT_EQ(fault("<platform/>"), "net: 0 <cluster> elements: expected one, and no hosts beside it");
  EXPECT_EQ(fault(platform(links + "topology='TORUS' topo_parameters='3,2' radical='0-11'")),
            "net: topo_parameters=\"3,2\" are 6 hosts, radical 12");
  EXPECT_EQ(fault(platform("bw=\"125furlong\" lat=\"50us\" radical='0-1'")),
            "net: bw=\"125furlong\": 'furlong' is no unit of it");
  EXPECT_EQ(fault(platform(links + "radical='0-9' bb_bw='200MBps'")),
            "net: a backbone of 200000000 B/s that 10 hosts share: only one that holds nothing up can be said");
  EXPECT_NE(fault("<platform><cluster").find("net: byte "), std::string::npos);
}

std::string nccl(int gpus, const std::function<std::string(int)>& links) {
  std::string text = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < gpus; ++i)
    text += "<pci busid=\"" + std::to_string(i) +
            "\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"80\">" + links(i) + "</gpu></pci>";
  return text + "</cpu></system>";
}

TEST(ImportNccl, SwitchesLinksAndPcie) {
  const Machine switched(
      import_machine("t", nccl(8, [](int) { return "<nvlink target='s' count='12' tclass='0x068000'/>"; })));
  EXPECT_EQ(switched.ranks(), 8);
  EXPECT_EQ(rate(switched, 0, 7), 240e9);
  const auto to_all = [](int own) {
    std::string links;
    for (int i = 0; i < 4; ++i)
      if (i != own) links += "<nvlink target='" + std::to_string(i) + "' count='2' tclass='0x030200'/>";
    return links;
  };
  const Machine joined(import_machine("t", nccl(4, to_all)));
  EXPECT_EQ(rate(joined, 1, 3), 40e9);
  const Machine pcie(import_machine("t", nccl(2, [](int) { return ""; })));
  EXPECT_NEAR(rate(pcie, 0, 1), 31.5e9, 0.1e9);
  EXPECT_EQ(fault(nccl(3, [](int i) { return i == 0 ? "<nvlink target='9' count='1'/>" : ""; })),
            "net: a link of the gpu at 0 leads to 9: expected another gpu");
  EXPECT_EQ(fault("<system/>"), "net: no <gpu>: expected a topology with its gpus, as NCCL_TOPO_DUMP_FILE writes it");
}

// A POWER9 host: three GPUs at each of two CPUs, joined by links to each other and to their CPU.
TEST(ImportNccl, LinksToTheCpuAreTheWayToTheHost) {
  const auto links = [](int own) {
    std::string text = "<nvlink target='cpu' count='2' tclass='0x068001'/>";
    for (int other = own / 3 * 3; other < own / 3 * 3 + 3; ++other)
      if (other != own) text += "<nvlink target='" + std::to_string(other) + "' count='3' tclass='0x030200'/>";
    return text;
  };
  const Machine two(import_machine("t", nccl(6, links)));
  EXPECT_EQ(two.ranks(), 6);
  for (Rank r = 0; r < 6; ++r) EXPECT_EQ(rate(two, r, r / 3 * 3 + (r + 1) % 3), 60e9) << r;
  EXPECT_EQ(rate(two, 0, 3), 40e9);
  EXPECT_EQ(rate(Machine(import_machine("t", nccl(3, links))), 0, 2), 60e9);
  const Machine apart(import_machine("t", nccl(2, [](int) { return "<nvlink count='2' tclass='0x068001'/>"; })));
  EXPECT_EQ(rate(apart, 0, 1), 40e9);
  EXPECT_EQ(fault(nccl(3, [&](int own) { return links(own) + "<nvlink count='2' tclass='0x068000'/>"; })),
            "net: gpus with links to switches and to others: expected one or the other of all");
}

// Two rings of four GPUs, as two hives, with PCIe between them. GPUs are numbered along the links.
TEST(ImportNccl, SomeAreJoined) {
  const auto two_rings = [](int own) {
    const int first = own / 4 * 4;
    std::string links;
    for (int other : {own ^ 1, own ^ 2})
      links += "<nvlink target='" + std::to_string(other) + "' count='2' tclass='0x030200'/>";
    return first <= own ? links : "";
  };
  const Machine hives(import_machine("t", nccl(8, two_rings)));
  EXPECT_EQ(hives.ranks(), 8);
  EXPECT_EQ(rate(hives, 0, 1), 40e9);
  EXPECT_NEAR(rate(hives, 0, 7), 31.5e9, 0.1e9);
  EXPECT_NEAR(rate(hives, 1, 2), 31.5e9, 0.1e9);  // opposite corners of a ring
  const auto chain = [](int own) {
    std::string links;
    for (int other : {own - 2, own + 2, own == 0 ? 1 : own == 1 ? 0 : -1, own == 4 ? 5 : own == 5 ? 4 : -1})
      if (other >= 0 && other < 6) links += "<nvlink target='" + std::to_string(other) + "' count='1'/>";
    return links;
  };
  const Machine ring(import_machine("t", nccl(6, chain)));
  for (Rank r = 0; r < 6; ++r) EXPECT_EQ(rate(ring, r, (r + 1) % 6), 20e9) << r;
}

TEST(Links, AreGoneRoundWhereOneIsDead) {
  const std::string three =
      "level links wire 3\nwire.rate = 10 GB/s | documented | x\nwire.latency = 1 us | documented | x\n"
      "wire.join.0.1 = 2 | documented | x\nwire.join.1.2 = 1 | documented | x\n";
  const Machine line(import_machine("t", three));
  EXPECT_EQ(rate(line, 0, 1), 20e9);
  EXPECT_EQ(rate(line, 0, 2), 10e9);
  EXPECT_EQ(latency(line, 0, 2), 2'000'000);
  MachineSpec all = import_machine("t", three + "wire.join.0.2 = 1 | documented | x\n");
  what_if(all, "dead:0-2");
  EXPECT_EQ(latency(Machine(all), 0, 2), 2'000'000);
  EXPECT_NE(why([&] { Machine(import_machine("t", three.substr(0, three.rfind("wire")))); }).find("no link leads"),
            std::string::npos);
}

TEST(ImportHwloc, DevicesByTheirSlowestLink) {
  const auto device = [](const char* place, const char* speed) {
    return std::string("<object type='PCIDev' pci_busid='") + place + "' pci_link_speed='" + speed +
           "'><object type='OSDev' name='cuda' osdev_type='5'/><object type='OSDev' name='card' "
           "osdev_type='1'/></object>";
  };
  const Machine m(import_machine("h", "<topology version='2.0'><object type='Machine'>" +
                                          device("0000:01:00.0", "31.5") + device("0000:02:00.0", "15.75") +
                                          "</object></topology>"));
  EXPECT_EQ(m.ranks(), 2);
  EXPECT_EQ(rate(m, 0, 1), 15.75e9);
  // A server's console is no rank, whatever its link.
  for (const char* speed : {"0.25", "0.0"})
    EXPECT_EQ(rate(Machine(import_machine("h", "<topology><object type='PCIDev' pci_busid='9' pci_link_speed='" +
                                                   std::string(speed) +
                                                   "'><object type='OSDev' name='card0' osdev_type='1'/></object>" +
                                                   device("1", "31.5") + device("2", "15.75") + "</topology>")),
                   0, 1),
              15.75e9)
        << speed;
  const auto rendering = [](int number) {
    return fmt::format(
        "<object type='PCIDev' pci_busid='{0}' pci_link_speed='8'><object type='OSDev' name='card{0}' osdev_type='1'/>"
        "<object type='OSDev' name='renderD{0}' osdev_type='1'/></object>",
        number);
  };
  EXPECT_EQ(Machine(import_machine("h", "<topology>" + rendering(1) + rendering(2) + "</topology>")).ranks(), 2);
  const Machine linked(import_machine(
      "h",
      "<topology><distances2 nbobjs='2' name='NVLinkBandwidth'><u64values length='9'>1000000 25000 </u64values>"
      "<u64values length='9'>25000 1000000 </u64values></distances2></topology>"));
  EXPECT_EQ(rate(linked, 0, 1), 25e9);
}

// A host with this many packages, cores per package and two threads per core, as lstopo writes it.
std::string cores(int packages, int each, const std::string& more = "") {
  std::string text = "<topology version='2.0'><object type='Machine'>";
  for (int p = 0; p < packages; ++p) {
    text += "<object type='Package'><object type='L3Cache'><object type='NUMANode'/>";
    for (int c = 0; c < each; ++c) text += "<object type='Core'><object type='PU'/><object type='PU'/></object>";
    text += "</object></object>";
  }
  return text + more + "</object></topology>";
}

std::string interface(const char* kind, const char* speed) {
  return fmt::format("<object type='PCIDev' pci_busid='3'{}><object type='OSDev' osdev_type='{}'/></object>", speed,
                     kind);
}

TEST(ImportHwloc, CoresWhereThereAreNoDevices) {
  const Machine one(import_machine("h", cores(1, 6)));
  EXPECT_EQ(one.dims(), (std::vector<Rank>{6}));
  const Machine two(import_machine("h", cores(2, 4)));
  EXPECT_EQ(two.dims(), (std::vector<Rank>{4, 2}));
  EXPECT_EQ(rate(two, 0, 1), rate(two, 0, 4));
  EXPECT_LT(latency(two, 0, 1), latency(two, 0, 4));
  std::vector<ResourceId> first, second;  // what leaves a package shares its links
  two.route(0, 4, first), two.route(1, 5, second);
  EXPECT_NE(std::ranges::find_first_of(first, second), first.end());
  EXPECT_TRUE(import_machine("h", cores(2, 4)).cluster.kind.empty());
  const std::string gpu =
      "<object type='PCIDev' pci_busid='9'><object type='OSDev' name='card0' osdev_type='1'/></object>";
  EXPECT_EQ(Machine(import_machine("h", cores(2, 4, gpu))).ranks(), 8);  // a console is no accelerator
  EXPECT_EQ(Machine(import_machine("h", "<topology><object type='PU'/><object type='PU'/></topology>")).ranks(), 2);
  EXPECT_EQ(fault("<topology/>"), "net: no gpus, no coprocessors and no cores: nothing that could be a rank");
  EXPECT_EQ(fault("<topology><object type='Package'><object type='Core'/><object type='Core'/></object>"
                  "<object type='Package'><object type='Core'/></object></topology>"),
            "net: packages of 1 to 2 cores: only packages that are all alike can be said");
  const std::string slow = "<object type='PCIDev' pci_busid='9'><object type='OSDev' osdev_type='5'/></object>";
  EXPECT_EQ(fault(cores(1, 2,
                        slow + "<object type='PCIDev' pci_busid='8' pci_link_speed='8'>"
                               "<object type='OSDev' osdev_type='5'/></object>")),
            "net: the PCI device 9 says nothing of its link's speed");
}

TEST(ImportHwloc, AnInterfaceJoinsHosts) {
  const auto joined_by = [](const std::string& more) {
    return Machine(joined(import_machine("h", cores(2, 4, more)), 3, "h x 3"));
  };
  const Machine kernel = joined_by(interface("2", ""));
  EXPECT_EQ(kernel.ranks(), 24);
  EXPECT_EQ(rate(kernel, 0, 8), 1.25e9);
  EXPECT_EQ(latency(kernel, 0, 8), 20 * us);
  const Machine fabric = joined_by(interface("3", " pci_link_speed='5'"));
  EXPECT_EQ(rate(fabric, 0, 8), 4e9);
  EXPECT_LT(latency(fabric, 0, 8), latency(kernel, 0, 8));
}

TEST(ImportMachine, KnowsTheFormats) {
  EXPECT_EQ(Machine(import_machine(
                        "m", "level ring r 4\nr.rate = 1 GB/s | documented | x\nr.latency = 1 us | documented | x\n"))
                .ranks(),
            4);
  EXPECT_EQ(fault("<html/>"), "net: <html>: expected <platform> (SimGrid), <system> (NCCL) or <topology> (hwloc)");
}

}  // namespace
}  // namespace trellis::sim
