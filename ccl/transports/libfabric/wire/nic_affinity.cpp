#include "ccl/transports/libfabric/wire/nic_affinity.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <system_error>
#include <tuple>

#include "kernels/dispatch/hwloc_topology.h"

namespace trellis::ccl::libfabric {
namespace {

// The smallest part of the machine with cores that the interface belongs to. Null: not known.
hwloc_obj_t home_of(const FabricNic& nic, hwloc_topology_t topology) {
  hwloc_obj_t found = nic.bus.empty() ? nullptr : hwloc_get_pcidev_by_busidstring(topology, nic.bus.c_str());
  for (hwloc_obj_t o = nullptr; found == nullptr && (o = hwloc_get_next_osdev(topology, o)) != nullptr;)
    if (o->name != nullptr && nic.name == o->name) found = o;
  return found == nullptr ? nullptr : hwloc_get_non_io_ancestor_obj(topology, found);
}

// Sorts by nearness: first, at 0, interfaces beside the threads, those that share a smaller part of the machine with
// them before others; then those whose place is not known; then those elsewhere.
std::tuple<int, int> distance(hwloc_obj_t home, const hwloc_bitmap_s* threads) {
  if (home == nullptr || home->cpuset == nullptr) return {1, 0};
  if (hwloc_bitmap_intersects(home->cpuset, threads) == 0) return {2, 0};
  return {0, hwloc_bitmap_weight(home->cpuset)};
}

// In which of `of` equal parts of this part of the machine, counted from 0, the first of the threads lies.
std::size_t turn(hwloc_obj_t home, const hwloc_bitmap_s* threads, std::size_t of) {
  if (hwloc_bitmap_intersects(home->cpuset, threads) == 0) return 0;
  const int all = hwloc_bitmap_weight(home->cpuset);
  int before = 0;
  for (int i = hwloc_bitmap_first(home->cpuset); i >= 0; i = hwloc_bitmap_next(home->cpuset, i), ++before)
    if (hwloc_bitmap_isset(threads, static_cast<unsigned>(i)) != 0) break;
  return all <= 0 ? 0 : std::min(of - 1, static_cast<std::size_t>(before) * of / static_cast<std::size_t>(all));
}

// This machine's topology with its devices, which hwloc finds only if it is asked to.
kernels::Topology with_devices() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) throw std::system_error(errno, std::generic_category(), "hwloc_topology_init");
  kernels::Topology topology(made);
  kernels::expect_no_sysfs(made);
  if (hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 || hwloc_topology_load(made) != 0)
    throw std::system_error(errno, std::generic_category(), "hwloc can't find this machine's devices");
  return topology;
}

}  // namespace

std::vector<std::size_t> by_nearness(const std::vector<FabricNic>& nics, hwloc_topology* topology,
                                     const hwloc_bitmap_s* threads) {
  std::vector<hwloc_obj_t> homes;
  for (const FabricNic& nic : nics) homes.push_back(home_of(nic, topology));
  std::vector<std::size_t> order(nics.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto far = [&](std::size_t i) { return distance(homes[i], threads); };
  std::ranges::stable_sort(order, {}, far);
  for (auto first = order.begin(); first != order.end();) {
    const auto last = std::find_if(first, order.end(), [&](std::size_t i) { return far(i) != far(*first); });
    const hwloc_obj_t home = homes[*first];
    if (home != nullptr && home->cpuset != nullptr)
      std::rotate(first,
                  first + static_cast<std::ptrdiff_t>(turn(home, threads, static_cast<std::size_t>(last - first))),
                  last);
    first = last;
  }
  return order;
}

std::vector<std::size_t> by_chips(const std::vector<FabricNic>& nics, const InstanceType& instance,
                                  const std::vector<int>& chips, std::vector<std::size_t> order) {
  constexpr int elsewhere = 2;
  const auto far = [&](std::size_t nic) {
    std::tuple<int, std::size_t> least(elsewhere, 0);
    for (std::size_t i = 0; i < chips.size(); ++i)
      if (const int d = instance.distance(nics[nic].bus, chips[i]); d < elsewhere)
        least = std::min(least, std::tuple(d, i));
    return least;
  };
  std::ranges::stable_sort(order, {}, far);
  for (auto first = order.begin(); first != order.end() && std::get<0>(far(*first)) == 0;) {
    const auto last = std::find_if(first, order.end(), [&](std::size_t i) { return far(i) != far(*first); });
    const std::size_t alike = static_cast<std::size_t>(last - first);
    const auto [place, of] = instance.turn(nics[*first].bus, chips[std::get<1>(far(*first))]);
    std::rotate(first, first + static_cast<std::ptrdiff_t>(place * alike / of), last);
    first = last;
  }
  return order;
}

std::vector<std::size_t> by_nearness(const std::vector<FabricNic>& nics) {
  const kernels::Topology topology = with_devices();
  return by_nearness(nics, topology.get(), kernels::usable_threads(topology).get());
}

}  // namespace trellis::ccl::libfabric
