#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "sim/cluster/machine/import/import.h"
#include "sim/cluster/machine/import/text.h"
#include "text/number.h"

namespace trellis::sim {
namespace {

constexpr const char* assumed_latency = "gpus.latency = 1000 ns 300..3000 | assumed | the file says nothing of latency";

// Bytes a second of one NVLink in one direction, by the GPU's sm, as NCCL counts them.
double nvlink_rate(std::string_view name, int sm) {
  constexpr std::pair<int, double> rates[] = {{100, 40.1e9}, {90, 20.6e9}, {86, 12e9},
                                              {80, 20e9},    {70, 20e9},   {60, 18e9}};
  for (const auto& [from, rate] : rates)
    if (sm >= from) return rate;
  refuse_import(name, "gpu of sm {}: expected 60 or more, which have NVLink", sm);
}

// "16.0 GT/s PCIe" and a number of lanes. The first two generations send 10 bits for a byte, later ones 130 bits for 16
// bytes.
double pcie_rate(std::string_view name, const pugi::xml_node& pci) {
  const std::string speed = pci.attribute("link_speed").value();
  std::string_view rest = speed;
  const double transfers = text::take_number<double>(rest).value_or(0);
  if (!(transfers > 0 && transfers <= 256)) refuse_import(name, "link_speed=\"{}\": expected one like 16 GT/s", speed);
  const Chip lanes = import_count(name, "link_width", pci.attribute("link_width").value());
  return transfers * 1e9 * lanes / (transfers < 8 ? 10.0 : 8.0 * 130 / 128);
}

struct Gpu {
  std::string place;                     // its busid
  std::map<std::string, double> direct;  // links, by the other GPU's busid
  double switched = 0;
  double link_rate = 0, pcie = 0;
};

Gpu gpu_of(std::string_view name, const pugi::xml_node& node) {
  const pugi::xml_node pci = node.parent();
  Gpu gpu{.place = pci.attribute("busid").value(), .direct = {}};
  if (std::string_view(pci.name()) != "pci" || gpu.place.empty()) refuse_import(name, "<gpu> outside a <pci busid>");
  for (const pugi::xml_node link : node.children()) {
    const bool nvlink = std::string_view(link.name()) == "nvlink";
    if (!nvlink && std::string_view(link.name()) != "xgmi") continue;
    const Chip count = import_count(name, "count", link.attribute("count").value());
    // NVSwitches are bridges of class 0x0680.
    if (std::string_view(link.attribute("tclass").value()).starts_with("0x0680"))
      gpu.switched += count;
    else
      gpu.direct[link.attribute("target").value()] += count;
    constexpr double xgmi_rate = 48e9;  // of gfx940 and later, as RCCL counts it
    gpu.link_rate = nvlink ? nvlink_rate(name, node.attribute("sm").as_int()) : xgmi_rate;
  }
  if (gpu.switched == 0 && gpu.direct.empty()) gpu.pcie = pcie_rate(name, pci);
  return gpu;
}

// Whether every GPU has the same number of links to every other.
bool all_joined(const std::vector<Gpu>& gpus) {
  std::set<std::string_view> places;
  for (const Gpu& gpu : gpus) places.insert(gpu.place);
  const double count = gpus.front().direct.empty() ? 0 : gpus.front().direct.begin()->second;
  return places.size() == gpus.size() && std::ranges::all_of(gpus, [&](const Gpu& gpu) {
           return gpu.direct.size() + 1 == gpus.size() && gpu.link_rate == gpus.front().link_rate &&
                  std::ranges::all_of(gpu.direct, [&](const auto& link) {
                    return link.first != gpu.place && places.contains(link.first) && link.second == count;
                  });
         });
}

}  // namespace

MachineSpec import_nccl(std::string_view name, std::string_view text) {
  pugi::xml_document document;
  import_xml(name, text, "system", document);
  std::vector<Gpu> gpus;
  for (const pugi::xml_node& node : import_elements(document.document_element(), "gpu"))
    gpus.push_back(gpu_of(name, node));
  if (gpus.empty())
    refuse_import(name, "no <gpu>: expected a topology with its gpus, as NCCL_TOPO_DUMP_FILE writes it");
  MachineText machine(name);
  const Gpu& first = gpus.front();
  const auto alike = [&](auto field) {
    return first.*field > 0 && std::ranges::all_of(gpus, [&](const Gpu& g) { return g.*field == first.*field; });
  };
  if (alike(&Gpu::switched) && alike(&Gpu::link_rate)) {
    machine.level("switch", "gpus", fmt::format("{}", gpus.size()));
    machine.rate("gpus.rate", first.switched * first.link_rate, "links to the switches");
  } else if (gpus.size() > 1 && all_joined(gpus)) {
    machine.level("full", "gpus", fmt::format("{}", gpus.size()));
    machine.rate("gpus.rate", first.direct.begin()->second * first.link_rate, "links to each other gpu");
  } else if (std::ranges::all_of(gpus, [](const Gpu& g) { return g.pcie > 0; })) {
    machine.level("switch", "gpus", fmt::format("{}", gpus.size()));
    machine.rate("gpus.rate", std::ranges::min_element(gpus, {}, &Gpu::pcie)->pcie, "the slowest PCIe link of a gpu");
  } else {
    refuse_import(name, "gpus that reach some others over links and some not: only all alike can be said");
  }
  machine.line(assumed_latency);
  return machine.read();
}

}  // namespace trellis::sim
