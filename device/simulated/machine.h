// The machine that simulated devices are cores of, and what their work costs there. One for each name and settings in a
// process, shared by its devices.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/device.h"
#include "device/simulated_time.h"
#include "device/topology.h"
#include "device/visible_cores.h"
#include "sim/cluster/answer/collective_answer.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::device {

class SimulatedMachine {
 public:
  // Throws invalid_argument for an unknown machine, or one of which no chip is known.
  static std::shared_ptr<const SimulatedMachine> named(std::string_view name, const VisibleCoreSettings&);
  SimulatedMachine(std::string_view name, const VisibleCoreSettings&);

  const sim::ChipSpec& chip() const { return chip_; }
  Topology topology(int visible_core) const;
  int logical_size() const { return logical_size_; }
  std::size_t core_bytes() const;  // HBM of a logical core

  // Bytes of HBM read and written by one core.
  Time memory_time(double bytes_touched) const;
  Time host_copy_time(double bytes) const;
  Time collective_time(const CollectiveSpec&) const;

 private:
  const sim::Machine& machine() const { return priced_.machine(); }
  sim::Time price(const CollectiveSpec&) const;

  const sim::MachineSpec spec_;
  mutable sim::PricingSession priced_;  // asked under the mutex
  const sim::ChipSpec chip_;
  const int logical_size_;
  const std::vector<int> visible_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, sim::Time> prices_;
};

}  // namespace trellis::device
