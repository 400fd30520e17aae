// Machine: a computer with many chips, described by data files, and the route between two ranks as a list of resources.
// Nothing in it grows with the number of chips.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/cluster/machine/fabric.h"
#include "sim/cluster/machine/machine_spec.h"

namespace trellis::sim {

// Anything with a rate that transfers share: a link, a network interface, an HBM stack, a rank's DMA engines.
using ResourceId = std::uint32_t;
inline constexpr ResourceId no_resource = static_cast<ResourceId>(-1);
inline constexpr double most_rate = 5.7e17;  // bytes a second: the highest rate of a resource that networks can count

// Software overheads of one generation of the software: figures era.NAME.*, and the chip's.
struct SoftwareOverheads {
  Time launch = 0;     // once for each collective, of eight ranks
  Time handshake = 0;  // before every transfer
  Time reduce = 0;     // before a transfer or local step that sums
  Time message = 0;    // for which each send occupies the rank's collective cores
  Time away = 0;       // from the end of a rank's send to another host until its next such send can begin
  Time counts = 0;     // once for each collective with separate counts for each rank
  Time dma_start = 0;  // before bytes move
  Time semaphore = 0;  // from the last byte's arrival to the step that waited for it
  double noise = 0;    // if requested: mean relative increase of launch, handshake, reduce and away
  double late = 0;     // a launch grows with this power of the ranks, as it ends when the last rank has started

  Time launched(Rank ranks) const;  // the launch's time for so many ranks
};

double launch_growth(double late, Rank ranks);  // a launch's time with so many ranks, as a multiple of that with eight

class Machine {
 public:
  explicit Machine(MachineSpec);  // throws invalid_argument for what is missing or inconsistent

  const MachineSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  std::string title() const;  // the name, and what was changed
  Rank ranks() const { return ranks_; }
  Rank cores() const { return cores_; }  // ranks of a chip
  Chip chips() const { return ranks_ / cores_; }
  std::vector<Rank> dims() const;  // innermost first: ranks of a chip if there are several, then the fabrics' dims
  std::vector<RowSymmetry> alike() const;  // likewise: rows of ranks, and how each may be renamed
  const std::vector<std::shared_ptr<const Fabric>>& fabrics() const { return fabrics_; }

  // Appends the links from one rank to the other; none within a chip. Detours around dead links if possible, else
  // throws invalid_argument.
  void route(Rank from, Rank to, std::vector<ResourceId>&) const;
  ResourceId hbm(Rank) const;  // no_resource if unlimited
  ResourceId dma(Rank) const;

  double rate(ResourceId) const;  // bytes a second
  double fastest() const;         // the highest rate of all resources, with and without their defects
  Time latency(ResourceId r) const { return ports_[r / ranks_].latency; }
  Rank span(ResourceId r) const { return ports_[r / ranks_].span; }  // ranks that share it, from the owner on
  Rank owner(ResourceId r) const { return static_cast<Rank>(r % ranks_); }
  ResourceId at(ResourceId r, Rank owner) const { return r - r % ranks_ + owner; }  // the same port of another rank
  std::uint32_t resources() const { return static_cast<std::uint32_t>(ports_.size()) * ranks_; }
  std::string resource_name(ResourceId) const;  // "neuronlink x+ of chip 3"
  std::string_view port_name(ResourceId r) const { return ports_[r / ranks_].name; }
  bool between_hosts(ResourceId) const;

  std::vector<std::string> eras() const;
  SoftwareOverheads overheads(
      std::string_view era) const;     // "": the usual one; throws invalid_argument, listing the known
  double slowness(Rank) const;         // of its engines and software: 1 except for stragglers
  double memory_slowness(Rank) const;  // of its HBM: 1 except for defects
  double injection() const;            // bytes a second that one chip can send
  Bisection bisection() const;         // of the machine, through its outermost fabric

 private:
  [[noreturn]] void refuse_idle(const std::string& port) const;
  void add_engines();
  void add_defects();
  enum class Dead : std::uint8_t { used, avoided };  // whether a route may use dead links
  // way() appends the links of a route through the fabrics before `fabric`, through() only those in `fabric`. False:
  // every route that is tried uses a dead link.
  bool way(Chip from, Chip to, std::size_t fabric, Dead, std::vector<ResourceId>&) const;
  bool through(std::size_t fabric, Chip from, Chip to, Dead, std::vector<ResourceId>&) const;

  MachineSpec spec_;
  Rank ranks_ = 1, cores_ = 1;
  std::vector<std::shared_ptr<const Fabric>> fabrics_;
  std::vector<std::int32_t> first_port_;  // of each fabric
  std::int32_t cluster_ = -1;             // the fabric that joins hosts; -1: there is one host, or a plain shape
  std::vector<Port> ports_;               // spans in ranks
  std::int32_t hbm_port_ = -1, dma_port_ = -1;
  std::unordered_map<ResourceId, double> factors_;
  std::unordered_map<Rank, double> slow_;
};

// A machine of sim/machines, several of one ("trn2.48xlarge x 4"), or a shape: levels from the inside, each a fabric
// and its dims, as in torus:16x32x32, ring:64, cores:4/torus:4x4/clos:16. Throws invalid_argument, listing the known.
Machine machine_named(std::string_view);
MachineSpec machine_spec(std::string_view name);
MachineSpec read_machine(std::string_view name, std::string_view text);
std::vector<std::string> machine_names();
// Sets a figure or adds a defect: "efa.rate=12GB/s", "dead:0-1", "slow:0-1:0.5", "nic:12:0.5", "hbm:3:0.7",
// "straggler:5:0.8".
void what_if(MachineSpec&, std::string_view);

}  // namespace trellis::sim
