// One logical core of a simulated machine: it does what the host does, and its time is the simulator's.
#include <fmt/format.h>

#include "device/backends.h"
#include "device/capabilities.h"
#include "device/host/host_device.h"
#include "device/program.h"
#include "device/simulated/clock.h"
#include "device/simulated/machine.h"
#include "device/simulated/program.h"

namespace trellis::device {
namespace {

constexpr std::string_view prefix = "sim:";

// The time of a core's work, by the clock of the stream that a thread works for.
class CoreTime : public SimulatedTime {
 public:
  CoreTime(const SimulatedMachine& machine, std::int64_t core, SimulatedClocks& clocks)
      : machine_(machine), core_(core), clocks_(clocks) {}
  RankClock now() const override { return {clocks_.now(), core_}; }
  void spend(const CollectiveSpec& run) override {
    const Time took = machine_.collective_time(run);
    for (const RankClock& c : run.clocks) clocks_.wait_until(c.time);
    clocks_.charge(took);
  }
  void hold() override { SimulatedClocks::take_over(true); }
  void release() override { SimulatedClocks::take_over(false); }

 private:
  const SimulatedMachine& machine_;
  const std::int64_t core_;
  SimulatedClocks& clocks_;
};

class Simulated : public HostDevice {
 public:
  Simulated(std::string_view name, std::shared_ptr<const SimulatedMachine> machine, const Opening& opening)
      : HostDevice(fmt::format("{} core {}", name, machine->topology(opening.core).core), machine->core_bytes()),
        machine_(std::move(machine)),
        timing_only_(opening.timing_only),
        time_(*machine_, machine_->topology(opening.core).core, *clocks_) {
    topology_ = machine_->topology(opening.core);
  }

  Capabilities capabilities() const override {
    Capabilities c = HostDevice::capabilities();
    for (const Capability more :
         {Capability::programs, Capability::simulated_time, Capability::memory_stats, Capability::profile})
      c.add(more);
    return c;
  }
  using Device::copy;
  using Device::fill;
  using Device::launch;
  void copy(void* dst, const void* src, std::size_t bytes, kernels::Stores stores) override {
    HostDevice::copy(dst, src, bytes, stores);
    const auto size = static_cast<double>(bytes);
    charge(is_here(dst) && is_here(src) ? machine_->memory_time(2 * size) : machine_->host_copy_time(size));
  }
  void fill(void* dst, std::byte value, std::size_t bytes) override {
    HostDevice::fill(dst, value, bytes);
    charge(machine_->memory_time(static_cast<double>(bytes)));
  }
  void reduce(kernels::Reduction op, kernels::DType type, std::span<const void* const> sources, void* dst,
              std::size_t n, const kernels::ReduceOptions& options) override {
    HostDevice::reduce(op, type, sources, dst, n, options);
    charge(machine_->memory_time(static_cast<double>((sources.size() + 1) * n * size_of(type))));
  }
  void divide(kernels::DType type, void* data, std::size_t n, std::uint32_t divisor) override {
    HostDevice::divide(type, data, n, divisor);
    charge(machine_->memory_time(static_cast<double>(2 * n * size_of(type))));
  }
  void launch(const KernelLaunch& what) override {
    const kernels::Kernel& kernel = check_launch(what);
    if (!timing_only_) run_launch(what);
    charge(machine_->memory_time(bytes_touched(kernel, what)));
  }
  std::unique_ptr<LoadedProgram> load(std::span<const std::byte> container) override {
    return std::make_unique<SimulatedProgram>(container, machine_->chip(), machine_->logical_size(), timing_only_,
                                              clocks_);
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<SimulatedStream>(clocks_); }
  std::unique_ptr<Event> event() override { return std::make_unique<ThreadEvent>(clocks_); }
  SimulatedTime* simulated_time() override { return &time_; }

 private:
  bool is_here(const void* p) const { return find(p, 1).outside == 0; }
  void charge(Time t) { clocks_->charge(t); }

  const std::shared_ptr<const SimulatedMachine> machine_;
  const bool timing_only_;
  const std::shared_ptr<SimulatedClocks> clocks_ = std::make_shared<SimulatedClocks>();
  CoreTime time_;
};

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const std::string& machine : sim::machine_names())
    if (!sim::machine_spec(machine).chip.empty()) out.push_back(std::string(prefix) + machine);
  return out;
}

const RegisteredBackend simulated({.name = std::string(prefix),
                                   .pattern = "sim:MACHINE",
                                   .summary = "a core of a simulated machine: right values, and the simulator's time",
                                   .open = [](std::string_view name, const Opening& o) -> std::shared_ptr<Device> {
                                     return std::make_shared<Simulated>(
                                         name, SimulatedMachine::named(name.substr(prefix.size()), core_settings()), o);
                                   },
                                   .names = names,
                                   .missing = [] { return std::string(); }});

}  // namespace
}  // namespace trellis::device
