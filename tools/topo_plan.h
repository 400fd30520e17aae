// A simulated machine's fabrics within each other, and the resource that each port of a chip is.
#pragma once

#include <string>
#include <vector>

#include "sim/machine.h"

namespace trellis::tools {

using sim::Chip;
using sim::ResourceId;

struct Layer {
  sim::Level level;
  const sim::Fabric* fabric = nullptr;
  std::uint32_t first_port = 0;  // among the machine's
  Chip inner() const { return fabric->inner(); }
  Chip chips() const { return fabric->inner() * fabric->size(); }
};

class TopoPlan {
 public:
  explicit TopoPlan(const sim::Machine&);

  const sim::Machine& machine() const { return machine_; }
  const std::vector<Layer>& layers() const { return layers_; }

  // The chip's port of that name without the level's, "x+"; no_resource: there is none.
  ResourceId port(const Layer&, std::string_view name, Chip) const;
  Chip sharers(const Layer&, std::string_view name) const;  // chips that share one such port; 0: there is none
  // All that belongs to these chips below a layer, and their ways into it.
  std::vector<ResourceId> within(std::size_t layers, Chip first, Chip count) const;
  std::vector<ResourceId> engines(Chip) const;  // HBM and DMA

  // Units below a switch of each height: {32, 2} for a Clos of 64; empty: the layer is no tree.
  std::vector<Chip> below(const Layer&) const;
  std::string ranks_words(Chip) const;  // "12-15"

 private:
  int find(const Layer&, std::string_view name) const;
  ResourceId id(std::uint32_t port, Chip) const;

  const sim::Machine& machine_;
  std::vector<Layer> layers_;
  std::uint32_t fabric_ports_ = 0;
};

}  // namespace trellis::tools
