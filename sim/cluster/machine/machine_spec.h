// MachineSpec: what a machine's file says, and what was changed of it, as a value. A Machine is made of one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective.h"
#include "sim/cluster/machine/fabric.h"

namespace trellis::sim {

using schedule::Rank;

// One level of the topology: how chips, or groups of chips, are joined. A MachineSpec lists the innermost level first.
struct TopologyLevel {
  std::string kind;  // a FabricFactory
  std::string name;  // prefix of the keys of its figures
  std::vector<Chip> dims;
};

// A degraded part. `factor` is what remains of the rate; 0: dead.
struct Defect {
  enum class Kind : std::uint8_t { link, nic, hbm, rank } kind = Kind::link;
  Rank from = 0, to = 0;  // link: the first link of the route from one rank to the other; else the rank, twice
  double factor = 1;
};

struct MachineSpec {
  std::string name;
  std::string chip;       // empty: ranks have no memory, engines or overheads
  std::string era;        // the usual one
  TopologyLevel cluster;  // joins several such machines; its dims are not used
  std::vector<TopologyLevel> levels;
  Figures figures;
  std::vector<Defect> defects;
  std::vector<std::string> changes = {};  // of what_if, as they were typed
};

}  // namespace trellis::sim
