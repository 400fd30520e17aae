#include "tools/topo/fabric_layers.h"

#include <fmt/format.h>

#include <algorithm>

namespace trellis::tools {

FabricLayers::FabricLayers(const sim::Machine& machine) : machine_(machine) {
  std::size_t next = 0;
  for (const sim::TopologyLevel& level : machine.spec().levels) {
    if (level.kind == "cores") continue;
    const sim::Fabric* fabric = machine.fabrics().at(next++).get();
    layers_.push_back({level, fabric, fabric_ports_});
    fabric_ports_ += static_cast<std::uint32_t>(fabric->ports().size());
  }
}

int FabricLayers::find(const FabricLayer& layer, std::string_view name) const {
  const auto& ports = layer.fabric->ports();
  const auto found = std::ranges::find(ports, fmt::format("{} {}", layer.level.name, name), &sim::Port::name);
  return found == ports.end() ? -1 : static_cast<int>(found - ports.begin());
}

ResourceId FabricLayers::id(std::uint32_t port, Chip chip) const {
  const auto ranks = static_cast<ResourceId>(machine_.ranks());
  const ResourceId first = port * ranks;
  const sim::Rank rank = chip * machine_.cores();
  return first + static_cast<ResourceId>(rank - rank % machine_.span(first));
}

ResourceId FabricLayers::port(const FabricLayer& layer, std::string_view name, Chip chip) const {
  const int found = find(layer, name);
  return found < 0 ? sim::no_resource : id(layer.first_port + static_cast<std::uint32_t>(found), chip);
}

Chip FabricLayers::sharers(const FabricLayer& layer, std::string_view name) const {
  const int found = find(layer, name);
  return found < 0 ? 0 : layer.fabric->ports()[static_cast<std::size_t>(found)].span;
}

std::vector<ResourceId> FabricLayers::engines(Chip chip) const {
  std::vector<ResourceId> all;
  for (sim::Rank r = chip * machine_.cores(); r < (chip + 1) * machine_.cores(); ++r)
    for (ResourceId one : {machine_.hbm(r), machine_.dma(r)})
      if (one != sim::no_resource) all.push_back(one);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<ResourceId> FabricLayers::within(std::size_t layers, Chip first, Chip count) const {
  std::vector<ResourceId> all;
  for (Chip chip = first; chip < first + count; ++chip) {
    for (std::size_t l = 0; l < std::min(layers + 1, layers_.size()); ++l)
      for (std::uint32_t p = 0; p < layers_[l].fabric->ports().size(); ++p)
        if (layers_[l].fabric->ports()[p].span <= count) all.push_back(id(layers_[l].first_port + p, chip));
    for (ResourceId one : engines(chip)) all.push_back(one);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<Chip> FabricLayers::below(const FabricLayer& layer) const {
  const Chip units = layer.fabric->size();
  if (layer.level.kind == "switch") return {units};
  if (layer.level.kind == "fattree") return layer.level.dims;
  if (layer.level.kind != "clos") return {};
  const auto radix = static_cast<Chip>(machine_.spec().figures.count(layer.level.name + ".radix"));
  if (units <= radix) return {units};
  return {radix, (units + radix - 1) / radix};
}

std::string FabricLayers::ranks_words(Chip chip) const {
  const sim::Rank first = chip * machine_.cores();
  return fmt::format("{}-{}", first, first + machine_.cores() - 1);
}

}  // namespace trellis::tools
