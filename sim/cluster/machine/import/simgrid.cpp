#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "sim/cluster/machine/import/import.h"
#include "sim/cluster/machine/import/import_parsing.h"

namespace trellis::sim {
namespace {

struct Suffix {
  std::string_view name;
  double size;
};

double measured(std::string_view name, std::string_view what, std::string_view text, std::span<const Suffix> units) {
  const std::size_t digits = text.find_last_of("0123456789.") + 1;
  const std::string_view unit = text.substr(std::min(digits, text.size()));
  for (const Suffix& known : units)
    if (unit == known.name) return import_number(name, what, text.substr(0, digits), true) * known.size;
  refuse_import(name, "{}=\"{}\": '{}' is no unit of it", what, text, unit);
}

double bandwidth(std::string_view name, std::string_view what, std::string_view text) {
  static constexpr std::array units = {Suffix{"", 1},         Suffix{"Bps", 1},         Suffix{"kBps", 1e3},
                                       Suffix{"MBps", 1e6},   Suffix{"GBps", 1e9},      Suffix{"TBps", 1e12},
                                       Suffix{"KiBps", 1024}, Suffix{"MiBps", 1048576}, Suffix{"bps", 0.125},
                                       Suffix{"kbps", 125},   Suffix{"GiBps", 1 << 30}, Suffix{"Mbps", 125e3},
                                       Suffix{"Gbps", 125e6}, Suffix{"Tbps", 125e9}};
  const double rate = measured(name, what, text, units);
  if (rate < 1) refuse_import(name, "{}=\"{}\": expected 1Bps or more", what, text);
  return rate;
}

double nanoseconds(std::string_view name, std::string_view what, std::string_view text) {
  static constexpr std::array units = {Suffix{"", 1e9},   Suffix{"s", 1e9},   Suffix{"ms", 1e6}, Suffix{"us", 1e3},
                                       Suffix{"ns", 1.0}, Suffix{"ps", 1e-3}, Suffix{"m", 60e9}};
  return measured(name, what, text, units);
}

// How many numbers "0-11,20" names.
std::int64_t radical(std::string_view name, std::string_view text) {
  std::int64_t count = 0;
  for (std::string_view part : import_list(text, ',')) {
    const std::size_t dash = part.find('-');
    const double first = import_number(name, "radical", part.substr(0, dash), true);
    const double last = dash == part.npos ? first : import_number(name, "radical", part.substr(dash + 1), true);
    if (last < first || last - first > 1e7) refuse_import(name, "radical=\"{}\": expected numbers like 0-11", text);
    count += static_cast<std::int64_t>(last - first) + 1;
  }
  return count;
}

struct Cluster {
  std::string_view name;
  std::string_view parameters;
  std::int64_t hosts = 0;
  double rate = 0, latency = 0;  // of a link
};

std::vector<Chip> counts(const Cluster& c, std::string_view list) {
  std::vector<Chip> all;
  for (std::string_view part : import_list(list, ',')) all.push_back(import_count(c.name, "topo_parameters", part));
  return all;
}

std::string joined(const std::vector<Chip>& dims) {
  std::string text;
  for (Chip d : dims) text += fmt::format("{}{}", text.empty() ? "" : "x", d);
  return text;
}

void expect_hosts(const Cluster& c, const std::vector<Chip>& dims) {
  double product = 1;
  for (Chip d : dims) product *= d;
  if (product != static_cast<double>(c.hosts))
    refuse_import(c.name, "topo_parameters=\"{}\" are {} hosts, radical {}", c.parameters, product, c.hosts);
}

void torus(const Cluster& c, MachineFileBuilder& machine) {
  const std::vector<Chip> dims = counts(c, c.parameters);
  expect_hosts(c, dims);
  machine.level("torus", "cluster", joined(dims));
  machine.rate("cluster.rate", c.rate, "bw");
  machine.latency("cluster.latency", c.latency, "lat");
}

// "3,4;4,3;5,1;2": groups and their links, chassis and theirs, routers and theirs, hosts. In Trellis, the routers of a
// group are fully connected.
void dragonfly(const Cluster& c, MachineFileBuilder& machine) {
  const auto parts = import_list(c.parameters, ';');
  if (parts.size() != 4)
    refuse_import(c.name, "topo_parameters=\"{}\": expected groups;chassis;routers;hosts", c.parameters);
  const auto groups = counts(c, parts[0]), chassis = counts(c, parts[1]), routers = counts(c, parts[2]),
             hosts = counts(c, parts[3]);
  if (groups.size() != 2 || chassis.size() != 2 || routers.size() != 2 || hosts.size() != 1)
    refuse_import(c.name, "topo_parameters=\"{}\": expected 3,4;4,3;5,1;2", c.parameters);
  if (chassis[0] != 1 || routers[1] != 1)
    refuse_import(c.name, "a dragonfly of {} chassis and {} links between routers: only 1 and 1 can be said",
                  chassis[0], routers[1]);
  const std::vector<Chip> dims = {hosts[0], routers[0], groups[0]};
  expect_hosts(c, dims);
  machine.level("dragonfly", "cluster", joined(dims));
  machine.rate("cluster.rate", c.rate, "bw");
  machine.rate("cluster.global.rate", c.rate * groups[1], "bw, by the links between groups");
  machine.latency("cluster.latency", c.latency, "lat");
}

// "2;4,4;1,2;1,2": levels, children of each, parents of each, cables to each parent.
void fat_tree(const Cluster& c, MachineFileBuilder& machine) {
  const auto parts = import_list(c.parameters, ';');
  if (parts.size() != 4) refuse_import(c.name, "topo_parameters=\"{}\": expected levels;down;up;cables", c.parameters);
  const Chip levels = import_count(c.name, "topo_parameters", parts[0]);
  const auto down = counts(c, parts[1]), up = counts(c, parts[2]), cables = counts(c, parts[3]);
  if (std::ssize(down) != levels || std::ssize(up) != levels || std::ssize(cables) != levels)
    refuse_import(c.name, "topo_parameters=\"{}\": {} levels, {}, {} and {} numbers", c.parameters, levels, down.size(),
                  up.size(), cables.size());
  expect_hosts(c, down);
  double over = 1;
  for (std::size_t i = 0; i + 1 < down.size(); ++i) {
    // A switch's downlink cables divided by its uplink cables.
    const double ratio = static_cast<double>(down[i]) * cables[i] / (static_cast<double>(up[i + 1]) * cables[i + 1]);
    if (i > 0 && ratio != over)
      refuse_import(c.name, "oversubscribed {} times at one level and {} at another: only one can be said", over,
                    ratio);
    over = ratio;
  }
  machine.level("fattree", "cluster", joined(down));
  machine.rate("cluster.rate", c.rate * up[0] * cables[0], "bw, by a host's cables");
  machine.latency("cluster.latency", 2 * c.latency * levels, "lat, by the links of the longest way");
  machine.line(fmt::format("cluster.oversubscription = {} | documented | topo_parameters", std::max(1.0, over)));
}

void flat(const Cluster& c, const pugi::xml_node& cluster, MachineFileBuilder& machine) {
  double latency = 2 * c.latency;
  if (const pugi::xml_attribute backbone = cluster.attribute("bb_bw")) {
    const double rate = bandwidth(c.name, "bb_bw", backbone.value());
    if (rate < c.rate * static_cast<double>(c.hosts) &&
        std::string_view(cluster.attribute("bb_sharing_policy").value()) != "FATPIPE")
      refuse_import(c.name, "a backbone of {} B/s that {} hosts share: only one that holds nothing up can be said",
                    rate, c.hosts);
    if (const pugi::xml_attribute also = cluster.attribute("bb_lat"))
      latency += nanoseconds(c.name, "bb_lat", also.value());
  }
  machine.level("switch", "cluster", fmt::format("{}", c.hosts));
  machine.rate("cluster.rate", c.rate, "bw");
  machine.latency("cluster.latency", latency, "lat, of both links and what lies between");
}

}  // namespace

MachineSpec import_simgrid(std::string_view name, std::string_view text) {
  pugi::xml_document document;
  import_xml(name, text, "platform", document);
  const auto clusters = import_elements(document.document_element(), "cluster");
  if (clusters.size() != 1)
    refuse_import(name, "{} <cluster> elements: expected one, and no hosts beside it", clusters.size());
  for (const char* other : {"host", "link", "peer", "backbone", "cabinet"})
    if (!import_elements(document.document_element(), other).empty())
      refuse_import(name, "<{}>: expected one <cluster> and nothing beside it", other);
  const pugi::xml_node cluster = clusters.front();
  for (const char* needed : {"radical", "bw", "lat"})
    if (!cluster.attribute(needed)) refuse_import(name, "<cluster> without {}", needed);
  const std::string_view sharing = cluster.attribute("sharing_policy").as_string("SPLITDUPLEX");
  if (sharing != "SPLITDUPLEX" && sharing != "FULLDUPLEX")
    refuse_import(name, "sharing_policy=\"{}\": expected SPLITDUPLEX, a link each way", sharing);
  if (cluster.attribute("limiter_link")) refuse_import(name, "limiter_link: there are no words for it");
  const Cluster c{.name = name,
                  .parameters = cluster.attribute("topo_parameters").value(),
                  .hosts = radical(name, cluster.attribute("radical").value()),
                  .rate = bandwidth(name, "bw", cluster.attribute("bw").value()),
                  .latency = nanoseconds(name, "lat", cluster.attribute("lat").value())};
  const std::string_view topology = cluster.attribute("topology").as_string("FLAT");
  MachineFileBuilder machine(name);
  if (topology == "TORUS")
    torus(c, machine);
  else if (topology == "DRAGONFLY")
    dragonfly(c, machine);
  else if (topology == "FAT_TREE")
    fat_tree(c, machine);
  else if (topology == "FLAT")
    flat(c, cluster, machine);
  else
    refuse_import(name, "topology=\"{}\": expected TORUS, FAT_TREE, DRAGONFLY or FLAT", topology);
  return machine.read();
}

}  // namespace trellis::sim
