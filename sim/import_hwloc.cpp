#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "sim/import_machine.h"
#include "sim/import_text.h"

namespace trellis::sim {
namespace {

constexpr const char* assumed_latency = "host.latency = 1000 ns 300..3000 | assumed | the file says nothing of latency";

// Words of numbers, over several elements, as distances are written.
std::vector<double> numbers(std::string_view name, const pugi::xml_node& matrix) {
  std::vector<double> all;
  for (const pugi::xml_node values : matrix.children("u64values"))
    for (std::string_view word : import_list(values.child_value(), ' '))
      if (!word.empty()) all.push_back(import_number(name, "a distance", word, true));
  return all;
}

// GPUs of one NVLinkBandwidth to each other, in MB/s: 0 where the file has no such matrix, or one with gaps or
// switches.
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

// PCI devices with a gpu or a coprocessor on them, each once, and the slowest of their links in bytes a second.
Links devices_of(std::string_view name, const pugi::xml_node& top) {
  std::set<std::string> seen;
  Links found{0, std::numeric_limits<double>::infinity()};
  for (const pugi::xml_node& object : import_elements(top, "object")) {
    const std::string_view kind = object.attribute("osdev_type").value();
    if (std::string_view(object.attribute("type").value()) != "OSDev" || (kind != "1" && kind != "5")) continue;
    const pugi::xml_node pci = object.parent();
    if (std::string_view(pci.attribute("type").value()) != "PCIDev" ||
        !seen.insert(pci.attribute("pci_busid").value()).second)
      continue;
    const double rate = pci.attribute("pci_link_speed")
                            ? import_number(name, "pci_link_speed", pci.attribute("pci_link_speed").value(), true)
                            : 0;
    // hwloc has 0 where it could not ask.
    if (rate <= 0)
      refuse_import(name, "the PCI device {} says nothing of its link's speed", pci.attribute("pci_busid").value());
    found.rate = std::min(found.rate, rate * 1e9);
    ++found.units;
  }
  return found;
}

}  // namespace

MachineSpec import_hwloc(std::string_view name, std::string_view text) {
  pugi::xml_document document;
  import_xml(name, text, "topology", document);
  const pugi::xml_node top = document.document_element();
  MachineText machine(name);
  if (const Links direct = links_of(name, top); direct.units > 0) {
    machine.level("full", "host", fmt::format("{}", direct.units));
    machine.rate("host.rate", direct.rate, "NVLinkBandwidth");
  } else {
    const Links devices = devices_of(name, top);
    if (devices.units == 0) refuse_import(name, "no gpu and no coprocessor: nothing that could be a rank");
    machine.level("switch", "host", fmt::format("{}", devices.units));
    machine.rate("host.rate", devices.rate, "the slowest PCIe link of a device");
  }
  machine.line(assumed_latency);
  return machine.read();
}

}  // namespace trellis::sim
