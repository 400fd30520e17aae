// A simulated machine's fabrics as nested layers, and the resource behind each port of a chip.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/machine/machine.h"

namespace trellis::tools {

using sim::Chip;
using sim::ResourceId;

struct FabricLayer {
  sim::TopologyLevel level;
  const sim::Fabric* fabric = nullptr;
  std::uint32_t first_port = 0;  // number among the machine's ports
  Chip inner() const { return fabric->inner(); }
  Chip chips() const { return fabric->inner() * fabric->size(); }
};

class FabricLayers {
 public:
  explicit FabricLayers(const sim::Machine&);

  const sim::Machine& machine() const { return machine_; }
  const std::vector<FabricLayer>& layers() const { return layers_; }

  // The chip's port with this name, without the layer's name: "x+"; no_resource: none.
  ResourceId port(const FabricLayer&, std::string_view name, Chip) const;
  Chip sharers(const FabricLayer&, std::string_view name) const;  // chips that share one such port; 0: there is none
  // All resources of these chips below a layer, and their links into it.
  std::vector<ResourceId> within(std::size_t layers, Chip first, Chip count) const;
  std::vector<ResourceId> engines(Chip) const;  // HBM and DMA

  // Units below a switch of each height: {32, 2} for a Clos of 64; empty: the layer is not a tree.
  std::vector<Chip> below(const FabricLayer&) const;
  std::string ranks_words(Chip) const;  // "12-15"

 private:
  int find(const FabricLayer&, std::string_view name) const;
  ResourceId id(std::uint32_t port, Chip) const;

  const sim::Machine& machine_;
  std::vector<FabricLayer> layers_;
  std::uint32_t fabric_ports_ = 0;
};

}  // namespace trellis::tools
