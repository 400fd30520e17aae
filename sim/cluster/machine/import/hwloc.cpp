#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>

#include "sim/cluster/machine/import/import.h"
#include "sim/cluster/machine/import/import_parsing.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

constexpr const char* assumed_latency = "host.latency = 1000 ns 300..3000 | assumed | the file says nothing of latency";

// Numbers separated by blanks, over several elements, as distances are written.
std::vector<double> numbers(std::string_view name, const pugi::xml_node& matrix) {
  std::vector<double> all;
  for (const pugi::xml_node values : matrix.children("u64values"))
    for (std::string_view word : text::words(values.child_value()))
      all.push_back(import_number(name, "a distance", word, true));
  return all;
}

// How many GPUs the matrix NVLinkBandwidth (in MB/s) covers, and the rate between any two of them; both 0 if the file
// has no such matrix. Refuses one whose values differ.
struct Links {
  Chip units = 0;
  double rate = 0;
};

Links links_of(std::string_view name, const pugi::xml_node& top) {
  for (const pugi::xml_node& matrix : import_elements(top, "distances2")) {
    if (std::string_view(matrix.attribute("name").value()) != "NVLinkBandwidth") continue;
    const Chip n = import_count(name, "nbobjs", matrix.attribute("nbobjs").value());
    const std::vector<double> values = numbers(name, matrix);
    if (static_cast<std::int64_t>(values.size()) != std::int64_t{n} * n)
      refuse_import(name, "NVLinkBandwidth of {} objects: {} values", n, values.size());
    std::set<double> between;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (i / static_cast<std::size_t>(n) != i % static_cast<std::size_t>(n)) between.insert(values[i]);
    if (n < 2) continue;
    if (between.size() != 1 || *between.begin() <= 0)
      refuse_import(name, "NVLinkBandwidth from {} to {} MB/s: only links that are all alike can be said",
                    *between.begin(), *between.rbegin());
    return {n, *between.begin() * 1e6};
  }
  return {};
}

enum class Kind : std::uint8_t { gpu = 1, network = 2, fabric = 3, coprocessor = 5 };  // hwloc's osdev_type

// A server's console is a GPU with a node that sets display modes, but without one that computes.
bool sets_modes_only(Kind kind, std::string_view name) {
  return kind == Kind::gpu && (name.starts_with("card") || name.starts_with("controlD"));
}

// PCI devices with an OS device of such a kind, each once, and their link rates in bytes a second; 0 if hwloc could not
// tell. Consoles are left out.
std::map<std::string, double> devices_of(std::string_view name, const pugi::xml_node& top,
                                         std::initializer_list<Kind> kinds) {
  std::map<std::string, double> found;
  for (const pugi::xml_node& object : import_elements(top, "object")) {
    if (std::string_view(object.attribute("type").value()) != "OSDev") continue;
    const auto kind = static_cast<Kind>(object.attribute("osdev_type").as_int(-1));
    const pugi::xml_node pci = object.parent();
    if (std::ranges::find(kinds, kind) == kinds.end() || std::string_view(pci.attribute("type").value()) != "PCIDev")
      continue;
    if (sets_modes_only(kind, object.attribute("name").value())) continue;
    const std::string_view speed = pci.attribute("pci_link_speed").value();
    found[pci.attribute("pci_busid").value()] =
        speed.empty() ? 0 : import_number(name, "pci_link_speed", speed, true) * 1e9;
  }
  return found;
}

// Adds the network: the fastest interface joins several such hosts. `unit`: the value of the figure network.rate, which
// is what one rank sends at most; empty: as much as the interface.
void add_network(MachineFileBuilder& machine, std::string_view name, const pugi::xml_node& top, std::string_view unit) {
  const auto fabrics = devices_of(name, top, {Kind::fabric});
  const auto all = devices_of(name, top, {Kind::fabric, Kind::network});
  if (all.empty()) return;
  double fastest = 0;
  for (const auto& [place, rate] : all) fastest = std::max(fastest, rate);
  const std::string rate =
      fastest > 0 ? fmt::format("{} GB/s {}..{} | assumed | at most its PCIe link; the file says nothing of the wire",
                                0.8e-9 * fastest, 0.2e-9 * fastest, 1e-9 * fastest)
                  : "1.25 GB/s 0.125..12.5 | assumed | 10 Gbit/s; the file says nothing of it";
  machine.cluster("switch", "network");
  machine.line(fmt::format("network.rate = {}", unit.empty() ? rate : unit));
  machine.line(fmt::format("network.host.rate = {}", rate));
  machine.line(fabrics.empty() ? "network.latency = 20 us 5..100 | assumed | through both kernels"
                               : "network.latency = 3 us 1..10 | assumed | past the kernel");
}

// Cores of each package; if the file has no cores, its hardware threads.
std::vector<Chip> cores_of(const pugi::xml_node& top, std::string_view what) {
  std::vector<Chip> packages;
  bool inside = false;
  for (const pugi::xml_node& object : import_elements(top, "object")) {
    const std::string_view type = object.attribute("type").value();
    const bool package = type == "Package" || type == "Socket";  // so called before hwloc 1.11
    if (package || (type == what && !inside)) packages.push_back(0), inside = true;
    if (type == what) ++packages.back();
  }
  std::erase(packages, 0);
  if (packages.empty() && what == "Core") return cores_of(top, "PU");
  return packages;
}

// Ranks communicate through memory within a package, and over links that a package's ranks share between packages.
void add_cores(MachineFileBuilder& machine, std::string_view name, const pugi::xml_node& top) {
  constexpr std::string_view copy =
      "8 GB/s 2..20 | assumed | what a core copies while the others of its package do too";
  const std::vector<Chip> packages = cores_of(top, "Core");
  if (packages.empty()) refuse_import(name, "no gpus, no coprocessors and no cores: nothing that could be a rank");
  const auto [least, most] = std::ranges::minmax(packages);
  if (least != most)
    refuse_import(name, "packages of {} to {} cores: only packages that are all alike can be said", least, most);
  machine.level("switch", "memory", fmt::format("{}", most));
  machine.line(fmt::format("memory.rate = {}", copy));
  machine.line("memory.latency = 300 ns 100..1000 | assumed | until another core sees what one wrote");
  if (packages.size() > 1) {
    machine.level("switch", "links", fmt::format("{}", packages.size()));
    machine.line(fmt::format("links.rate = {}", copy));
    machine.line("links.host.rate = 40 GB/s 20..100 | assumed | the links of one package to the others");
    machine.line("links.latency = 500 ns 200..1500 | assumed | as memory's, and a link");
  }
  add_network(machine, name, top, copy);
}

}  // namespace

MachineSpec import_hwloc(std::string_view name, std::string_view text) {
  pugi::xml_document document;
  import_xml(name, text, "topology", document);
  const pugi::xml_node top = document.document_element();
  MachineFileBuilder machine(name);
  const Links direct = links_of(name, top);
  const auto devices = devices_of(name, top, {Kind::gpu, Kind::coprocessor});
  if (direct.units > 0) {
    machine.level("full", "host", fmt::format("{}", direct.units));
    machine.rate("host.rate", direct.rate, "NVLinkBandwidth");
  } else if (devices.size() > 1) {
    const auto& [place, rate] = *std::ranges::min_element(devices, {}, [](const auto& d) { return d.second; });
    if (rate <= 0) refuse_import(name, "the PCI device {} says nothing of its link's speed", place);
    machine.level("switch", "host", fmt::format("{}", devices.size()));
    machine.rate("host.rate", rate, "the slowest PCIe link of a device");
  } else {
    add_cores(machine, name, top);
    return machine.read();
  }
  machine.line(assumed_latency);
  add_network(machine, name, top, "");
  return machine.read();
}

}  // namespace trellis::sim
