// Which network interfaces are near, on described machines: two packages of eight threads, each with two interfaces
// behind a bridge of its own.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwloc.h>

#include "ccl/transports/libfabric/wire/nic_affinity.h"
#include "kernels/dispatch/hwloc_topology.h"

namespace trellis::ccl::libfabric {
namespace {

using Order = std::vector<std::size_t>;

// hwloc's synthetic machines have no devices, so they are written into the text of one.
kernels::Topology machine() {
  hwloc_topology_t plain = nullptr;
  hwloc_topology_init(&plain);
  const kernels::Topology synthetic(plain);
  hwloc_topology_set_synthetic(plain, "package:2 numa:1 core:8 pu:1");
  hwloc_topology_load(plain);
  char* text = nullptr;
  int bytes = 0;
  hwloc_topology_export_xmlbuffer(plain, &text, &bytes, 0);
  std::string xml(text);
  hwloc_free_xmlbuffer(plain, text);
  for (int package = 1; package >= 0; --package) {
    const std::size_t end =
        xml.rfind("    </object>\n", package == 1 ? xml.npos : xml.find("type=\"Package\" os_index=\"1\""));
    const int bus = 16 * (package + 1), number = 100 * (package + 1);
    std::string devices = fmt::format(
        "<object type=\"Bridge\" gp_index=\"{}\" bridge_type=\"0-1\" depth=\"0\" "
        "bridge_pci=\"0000:[{:02x}-{:02x}]\">\n",
        number, bus, bus + 15);
    for (int i = 0; i < 2; ++i)
      devices += fmt::format(
          "<object type=\"PCIDev\" gp_index=\"{}\" pci_busid=\"0000:{:02x}:00.0\" pci_type=\"0200 "
          "[1d0f:efa1] [1d0f:efa1] 00\" pci_link_speed=\"0.0\">\n<object type=\"OSDev\" gp_index=\"{}\" "
          "name=\"eth{}\" osdev_type=\"2\"/>\n</object>\n",
          number + 1 + 2 * i, bus + i, number + 2 + 2 * i, 2 * package + i);
    xml.insert(end, devices + "</object>\n");
  }
  hwloc_topology_t made = nullptr;
  hwloc_topology_init(&made);
  kernels::Topology topology(made);
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL);
  EXPECT_EQ(hwloc_topology_set_xmlbuffer(made, xml.c_str(), static_cast<int>(xml.size()) + 1), 0);
  EXPECT_EQ(hwloc_topology_load(made), 0) << xml;
  return topology;
}

Order order_for(const std::vector<FabricNic>& nics, unsigned first, unsigned last) {
  const kernels::Topology topology = machine();
  const kernels::ThreadSet threads(hwloc_bitmap_alloc());
  hwloc_bitmap_set_range(threads.get(), first, static_cast<int>(last));
  return by_nearness(nics, topology.get(), threads.get());
}

const std::vector<FabricNic> by_bus = {
    {"rdma0", "0000:10:00.0"}, {"rdma1", "0000:11:00.0"}, {"rdma2", "0000:20:00.0"}, {"rdma3", "0000:21:00.0"}};

TEST(Nearness, InterfacesOfTheOwnPackageComeFirst) {
  EXPECT_EQ(order_for(by_bus, 0, 7), (Order{0, 1, 2, 3}));
  EXPECT_EQ(order_for(by_bus, 8, 15), (Order{2, 3, 0, 1}));
}

TEST(Nearness, ProcessesBesideEachOtherTakeTurns) {
  EXPECT_EQ(order_for(by_bus, 2, 3).front(), 0U);
  EXPECT_EQ(order_for(by_bus, 4, 5).front(), 1U);
  EXPECT_EQ(order_for(by_bus, 8, 8).front(), 2U);
  EXPECT_EQ(order_for(by_bus, 15, 15).front(), 3U);
}

TEST(Nearness, AnInterfaceIsKnownByItsNameToo) {
  EXPECT_EQ(order_for({{"eth1", ""}, {"eth2", ""}}, 9, 9), (Order{1, 0}));
}

TEST(Nearness, WhatIsNotKnownLiesBetweenNearAndFar) {
  EXPECT_EQ(order_for({{"rdma3", "0000:21:00.0"}, {"other", "0000:77:00.0"}, {"rdma0", "0000:10:00.0"}}, 0, 0),
            (Order{2, 1, 0}));
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
