#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "sim/cluster/machine/import/import.h"
#include "sim/cluster/machine/import/import_parsing.h"
#include "text/number_parsing.h"

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

// Bytes a second of one xGMI link, by the GPU's gcn ("906", "gfx942"; "910" is gfx90a), as RCCL counts them.
double xgmi_rate(std::string_view gcn) {
  if (gcn.starts_with("gfx")) gcn.remove_prefix(3);
  if (gcn == "910" || gcn == "90a") return 36e9;
  return text::number<int>(gcn).value_or(942) >= 940 ? 48e9 : 24e9;
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
  double switched = 0, to_cpu = 0;       // links
  double link_rate = 0, to_host = 0;     // bytes a second; to_host: of a GPU without links to others
};

Gpu gpu_of(std::string_view name, const pugi::xml_node& node) {
  const pugi::xml_node pci = node.parent();
  Gpu gpu{.place = pci.attribute("busid").value(), .direct = {}};
  if (std::string_view(pci.name()) != "pci" || gpu.place.empty()) refuse_import(name, "<gpu> outside a <pci busid>");
  for (const pugi::xml_node link : node.children()) {
    const bool nvlink = std::string_view(link.name()) == "nvlink";
    if (!nvlink && std::string_view(link.name()) != "xgmi") continue;
    const Chip count = import_count(name, "count", link.attribute("count").value());
    // NVSwitches are bridges of class 0x0680, POWER9's CPUs of class 0x068001, as in NCCL.
    const std::string_view other = link.attribute("tclass").value();
    if (other.starts_with("0x068001"))
      gpu.to_cpu += count;
    else if (other.starts_with("0x0680"))
      gpu.switched += count;
    else
      gpu.direct[link.attribute("target").value()] += count;
    gpu.link_rate =
        nvlink ? nvlink_rate(name, node.attribute("sm").as_int()) : xgmi_rate(node.attribute("gcn").value());
  }
  if (gpu.switched == 0 && gpu.direct.empty())
    gpu.to_host = gpu.to_cpu > 0 ? gpu.to_cpu * gpu.link_rate : pcie_rate(name, pci);
  return gpu;
}

// The rate between a GPU and its CPU: of its NVLinks to the CPU, or else of the slowest PCIe link on the way; 0: the
// file does not say.
double way_to_host(std::string_view name, const pugi::xml_document& document, const Gpu& gpu) {
  if (gpu.to_cpu > 0) return gpu.to_cpu * gpu.link_rate;
  const std::string& place = gpu.place;
  double least = 0;
  for (const pugi::xml_node& node : import_elements(document.document_element(), "pci")) {
    if (place != node.attribute("busid").value()) continue;
    for (pugi::xml_node at = node; std::string_view(at.name()) == "pci"; at = at.parent())
      if (*at.attribute("link_speed").value() != '\0') {
        const double rate = pcie_rate(name, at);
        least = least == 0 ? rate : std::min(least, rate);
      }
  }
  return least;
}

// Whether every GPU has the same number of links to every other, and none to switches.
bool all_joined(const std::vector<Gpu>& gpus) {
  std::set<std::string_view> places;
  for (const Gpu& gpu : gpus) places.insert(gpu.place);
  const double count = gpus.front().direct.empty() ? 0 : gpus.front().direct.begin()->second;
  return places.size() == gpus.size() && std::ranges::all_of(gpus, [&](const Gpu& gpu) {
           return gpu.switched == 0 && gpu.direct.size() + 1 == gpus.size() &&
                  gpu.link_rate == gpus.front().link_rate && std::ranges::all_of(gpu.direct, [&](const auto& link) {
                    return link.first != gpu.place && places.contains(link.first) && link.second == count;
                  });
         });
}

using Widths = std::vector<std::vector<double>>;  // how many links join two GPUs

Widths widths_of(std::string_view name, const std::vector<Gpu>& gpus) {
  std::map<std::string_view, std::size_t> numbers;
  for (const Gpu& gpu : gpus)
    if (!numbers.try_emplace(gpu.place, numbers.size()).second) refuse_import(name, "two gpus at {}", gpu.place);
  Widths widths(gpus.size(), std::vector<double>(gpus.size(), 0));
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (const auto& [place, count] : gpus[a].direct) {
      const auto b = numbers.find(place);
      if (b == numbers.end() || b->second == a)
        refuse_import(name, "a link of the gpu at {} leads to {}: expected another gpu", gpus[a].place, place);
      double &there = widths[a][b->second], &back = widths[b->second][a];
      there = back = there > 0 ? std::min(there, count) : count;
    }
  return widths;
}

// Orders the GPUs so that each has a link to the next, and the last to the first, as the rings of NCCL take them. Keeps
// the file's order if there is no such order, or none is found soon.
std::vector<std::size_t> in_a_ring(const Widths& widths) {
  const std::size_t n = widths.size();
  std::vector<std::size_t> ring{0};
  std::vector<bool> used(n, false);
  std::size_t tries = 100'000;
  used[0] = true;
  const std::function<bool()> complete = [&] {
    if (ring.size() == n) return widths[ring.back()][0] > 0;
    std::vector<std::size_t> next;
    for (std::size_t b = 0; b < n; ++b)
      if (!used[b] && widths[ring.back()][b] > 0) next.push_back(b);
    std::ranges::stable_sort(next, std::greater<>(), [&](std::size_t b) { return widths[ring.back()][b]; });
    for (const std::size_t b : next) {
      if (tries == 0 || --tries == 0) return false;
      ring.push_back(b), used[b] = true;
      if (complete()) return true;
      ring.pop_back(), used[b] = false;
    }
    return false;
  };
  if (complete()) return ring;
  ring.resize(n);
  std::iota(ring.begin(), ring.end(), std::size_t{0});
  return ring;
}

// The machine of GPUs each of which has links to some others only: the links are listed one by one.
MachineSpec irregular(std::string_view name, const pugi::xml_document& document, const std::vector<Gpu>& gpus) {
  constexpr std::size_t most = 32;
  if (gpus.size() > most)
    refuse_import(name, "{} gpus with links to some others: expected at most {}", gpus.size(), most);
  const Widths widths = widths_of(name, gpus);
  const std::vector<std::size_t> order = in_a_ring(widths);
  double rate = 0, host = 0;
  bool all_known = true;
  for (const Gpu& gpu : gpus) {
    if (gpu.switched > 0)
      refuse_import(name, "gpus with links to switches and to others: expected one or the other of all");
    if (gpu.link_rate > 0) rate = rate == 0 ? gpu.link_rate : std::min(rate, gpu.link_rate);
    const double way = way_to_host(name, document, gpu);
    all_known = all_known && way > 0;
    host = host == 0 ? way : std::min(host, way);
  }
  MachineFileBuilder machine(name);
  machine.level("links", "gpus", fmt::format("{}", gpus.size()));
  machine.rate("gpus.rate", rate, "one link between two gpus");
  if (all_known) machine.rate("gpus.host.rate", host, "the slowest way between a gpu and its CPU");
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (std::size_t b = a + 1; b < gpus.size(); ++b)
      if (const double links = widths[order[a]][order[b]]; links > 0)
        machine.line(fmt::format("gpus.join.{}.{} = {} | documented | {} to {}", a, b, links, gpus[order[a]].place,
                                 gpus[order[b]].place));
  machine.line(assumed_latency);
  return machine.read();
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
  MachineFileBuilder machine(name);
  const Gpu& first = gpus.front();
  const auto alike = [&](auto field) {
    return first.*field > 0 && std::ranges::all_of(gpus, [&](const Gpu& g) { return g.*field == first.*field; });
  };
  const bool any_direct = std::ranges::any_of(gpus, [](const Gpu& g) { return !g.direct.empty(); });
  if (!any_direct && alike(&Gpu::switched) && alike(&Gpu::link_rate)) {
    machine.level("switch", "gpus", fmt::format("{}", gpus.size()));
    machine.rate("gpus.rate", first.switched * first.link_rate, "links to the switches");
  } else if (gpus.size() > 1 && all_joined(gpus)) {
    machine.level("full", "gpus", fmt::format("{}", gpus.size()));
    machine.rate("gpus.rate", first.direct.begin()->second * first.link_rate, "links to each other gpu");
  } else if (std::ranges::all_of(gpus, [](const Gpu& g) { return g.to_host > 0; })) {
    machine.level("switch", "gpus", fmt::format("{}", gpus.size()));
    machine.rate("gpus.rate", std::ranges::min_element(gpus, {}, &Gpu::to_host)->to_host,
                 "the slowest way of a gpu to its CPU");
  } else {
    return irregular(name, document, gpus);
  }
  machine.line(assumed_latency);
  return machine.read();
}

}  // namespace trellis::sim
