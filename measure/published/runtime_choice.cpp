#include "measure/published/runtime_choice.h"

#include <algorithm>
#include <string>

namespace trellis::measure {
namespace {

using schedule::Collective;
using sim::AlgorithmConfig;
using sim::Pricer;
using sim::Rank;

// Bytes, by neuron-runtime/explore/intranode-collective-comm.rst: mesh up to the first size, recursive halving and
// doubling up to the second.
constexpr double mesh_up_to = 1e6, rdh_up_to = 56e6;
// Since aws-neuronx-collectives 2.12.22 of this day, all_reduce and reduce_scatter of several hosts are hierarchical.
constexpr const char* hierarchical_since = "2023-03-28";
// Beyond this size, published reduce_scatters of 2, 8 and 32 ranks take as long as by one channel.
constexpr double many_channels_up_to = 768 << 20;

bool by_size(Collective c) {
  return c == Collective::all_reduce || c == Collective::all_gather || c == Collective::reduce_scatter;
}

// The algorithms for a size within a host. Kangaring needs all ranks of each chip. Recursive halving and doubling needs
// a power of two of ranks and Trainium 2 or later; not for two ranks, which take a ring's time at all sizes above a
// mesh's (Inferentia 2, Trainium 1 and 2).
std::vector<std::string> names_by_size(const Pricer& pricer, double bytes) {
  const Rank ranks = pricer.group().ranks(), chip = pricer.machine().cores();
  const std::string large = ranks % chip == 0 ? "kangaring" : "ring";
  if (bytes < mesh_up_to) return {"mesh"};
  const bool power = (ranks & (ranks - 1)) == 0 && ranks > 2;
  const bool halving = power && pricer.machine().spec().figures.number("generation") > 2;
  if (bytes <= rdh_up_to && halving) return {"rdh", large};
  return {large};
}

bool by_hierarchy(const Record& r, Collective c, bool meshes) {
  return (c == Collective::all_reduce || c == Collective::reduce_scatter) &&
         (meshes || r.word("date") >= hierarchical_since);
}

}  // namespace

// Era 2023 has only rings and hierarchies of them, as the documentation of its time describes no other algorithms.
// Rooted collectives use a ring with segments, because otherwise no rank could send before it has all data. With later
// runtimes, which have meshes, their root can also exchange with each rank directly.
std::vector<AlgorithmConfig> runtime_configs(const Record& r, const Pricer& pricer, Rank nodes, double bytes) {
  const Collective collective = pricer.settings().operation.collective;
  const bool meshes = !pricer.settings().era.starts_with("2023"), rooted = schedule::rooted(collective);
  std::vector<std::string> names = {"ring", "flat_ring", "direct"};
  if (meshes) names = {"mesh", "rdh", "kangaring", "ring", "flat_ring", "direct"};
  std::vector<std::int32_t> channels = {1, 2, 4};
  if (const std::string said = r.word("algorithm"); !said.empty()) {
    names = {said.substr(0, said.find(' '))};
  } else if (meshes && nodes == 1 && by_size(collective)) {
    names = names_by_size(pricer, bytes);
    if (collective == Collective::reduce_scatter && bytes > many_channels_up_to) channels = {1};
  } else if (nodes > 1 && by_hierarchy(r, collective, meshes)) {
    names.push_back("hierarchical");
    if (!meshes) names = {"hierarchical"};
  }
  const std::vector<std::int32_t> segments =
      rooted ? std::vector<std::int32_t>{1, 4, 16, 64} : std::vector<std::int32_t>{1};
  std::vector<AlgorithmConfig> configs = sim::configs_of(pricer, names, channels, segments);
  for (AlgorithmConfig& config : configs) {
    if (config.algorithm != "flat_ring" && config.algorithm != "hierarchical") continue;
    config.dims = {pricer.group().ranks() / nodes, nodes};  // their levels are a host's ranks and hosts, not chips
    if (config.algorithm == "hierarchical") config.levels = {"ring", "ring"};
  }
  const bool ring = std::ranges::any_of(configs, [](const AlgorithmConfig& w) { return w.algorithm != "direct"; });
  if (names.size() > 1 && ring && !(rooted && meshes))
    std::erase_if(configs, [](const AlgorithmConfig& w) { return w.algorithm == "direct"; });
  return configs;
}

}  // namespace trellis::measure
