#include "device/simulated/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "device/fork_safe_singleton.h"
#include "text/refuse.h"

namespace trellis::device {
namespace {

// Between host memory and a core's HBM, bytes a second: the order of magnitude that the NKI memory pyramid gives.
constexpr double host_rate = 16e9;

sim::MachineSpec spec_for(std::string_view name, const VisibleCoreSettings& settings) {
  sim::MachineSpec spec = sim::machine_spec(name);
  if (spec.chip.empty())
    text::refuse("sim:{}: no chip is known of this machine; expected one such as trn2.48xlarge", name);
  const sim::ChipSpec chip = sim::chip_named(spec.chip);
  const int size = logical_size(settings, chip.name, chip.logical_cores, chip.cores);
  if (size != chip.logical_cores) sim::what_if(spec, fmt::format("logical.cores={}", size));
  return spec;
}

sim::RankGroup group_of(const sim::Machine& machine, const CollectiveSpec& run) {
  sim::RankGroup group{.name = "", .dims = {run.ranks}};
  bool in_order = true;
  for (std::size_t r = 0; r < run.clocks.size(); ++r) {
    group.members.push_back(static_cast<sim::Rank>(run.clocks[r].core));
    in_order = in_order && run.clocks[r].core == static_cast<std::int64_t>(r);
  }
  if (run.clocks.empty() || in_order) return sim::first_in_a_row(machine, run.ranks);
  return group;
}

std::string key_of(const CollectiveSpec& run) {
  std::string key = fmt::format("{} {} {} {} {} {} {} {}", run.collective, run.config, run.ranks, run.bytes,
                                run.element, run.root, run.peer, run.in_place);
  for (const RankClock& c : run.clocks) key += fmt::format(" {}", c.core);
  for (const auto& [from, to] : run.pairs) key += fmt::format(" {}-{}", from, to);
  for (const std::size_t n : run.counts) key += fmt::format(" ={}", n);
  return key;
}

// Adds the ports that each join two chips directly.
void add_links(const sim::Machine& machine, std::vector<Link>& links) {
  std::vector<sim::Hop> hops;
  for (const auto& fabric : machine.fabrics()) {
    const sim::Chip group = fabric->inner() * fabric->size();
    for (sim::Chip from = 0; from < machine.chips(); ++from)
      for (sim::Chip to = from / group * group; to < std::min(machine.chips(), (from / group + 1) * group); ++to) {
        hops.clear();
        if (from == to || from % fabric->inner() != to % fabric->inner() || !fabric->route(from, to, 0, hops) ||
            hops.size() != 1)
          continue;
        const sim::Port& port = fabric->ports()[static_cast<std::size_t>(hops.front().port)];
        links.push_back({from, to, port.name, port.rate});
      }
  }
}

// The port by which a machine of one host connects to others: the first one of its cluster.
void add_nics(const sim::MachineSpec& spec, const sim::Machine& machine, std::vector<Nic>& nics) {
  if (spec.cluster.kind.empty()) return;
  const bool several = spec.name.find(" x ") != std::string::npos;
  const sim::Machine joined = sim::machine_named(several ? spec.name : spec.name + " x 2");
  const sim::Port& port = joined.fabrics().back()->ports().front();
  for (sim::Chip chip = 0; chip < machine.chips(); chip += port.span) nics.push_back({port.name, chip, port.rate});
}

}  // namespace

std::shared_ptr<const SimulatedMachine> SimulatedMachine::named(std::string_view name,
                                                                const VisibleCoreSettings& settings) {
  struct Known {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<const SimulatedMachine>> machines;
  };
  auto& [mutex, machines] = of_this_process([] { return new Known; });
  const std::string key =
      fmt::format("{} {} {} {}", name, settings.visible, settings.count.value_or(0), settings.logical_size.value_or(0));
  const std::lock_guard lock(mutex);
  auto machine = machines[key].lock();
  if (!machine) machines[key] = machine = std::make_shared<SimulatedMachine>(name, settings);
  return machine;
}

SimulatedMachine::SimulatedMachine(std::string_view name, const VisibleCoreSettings& settings)
    : spec_(spec_for(name, settings)),
      priced_(spec_),
      chip_(sim::chip_named(spec_.chip)),
      logical_size_(device::logical_size(settings, chip_.name, chip_.logical_cores, chip_.cores)),
      visible_(visible_cores(settings, machine().ranks())) {}

Topology SimulatedMachine::topology(int visible_core) const {
  if (visible_core < 0 || static_cast<std::size_t>(visible_core) >= visible_.size())
    text::refuse("sim:{}: core {}: expected one of the {} visible cores, from 0 on", machine().name(), visible_core,
                 visible_.size());
  Topology t{.machine = machine().name(),
             .chip = chip_.name,
             .chips = machine().chips(),
             .cores = machine().ranks(),
             .physical_of_core = logical_size_,
             .core = visible_[static_cast<std::size_t>(visible_core)],
             .visible = static_cast<int>(visible_.size()),
             .memory_bytes = static_cast<double>(core_bytes())};
  add_links(machine(), t.links);
  add_nics(spec_, machine(), t.nics);
  return t;
}

std::size_t SimulatedMachine::core_bytes() const {
  return static_cast<std::size_t>(chip_.memory.hbm_bytes / chip_.cores * logical_size_);
}

// A DMA that uses all engines of the core: fixed cost, plus bytes at the slower of engines and HBM.
Time SimulatedMachine::memory_time(double bytes_touched) const {
  const double engines = chip_.dma.engines * chip_.dma.engine_rate * 2 * logical_size_;  // each byte read and written
  const double hbm = chip_.memory.hbm_rate / chip_.cores * logical_size_;
  return chip_.dma.start_hardware + chip_.dma.done + sim::transfer_time(bytes_touched, std::min(engines, hbm));
}

Time SimulatedMachine::host_copy_time(double bytes) const {
  return chip_.dma.start_hardware + chip_.dma.done + sim::transfer_time(bytes, host_rate);
}

Time SimulatedMachine::collective_time(const CollectiveSpec& run) const {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = prices_.try_emplace(key_of(run), 0);
  if (is_new) {
    try {
      at->second = price(run);
    } catch (...) {
      prices_.erase(at);
      throw;
    }
  }
  return at->second;
}

// A message between ranks of one core is a copy in its memory.
sim::Time SimulatedMachine::price(const CollectiveSpec& run) const {
  if (run.collective == "send_recv" && run.clocks.size() == 2 && run.clocks[0].core == run.clocks[1].core)
    return memory_time(2 * static_cast<double>(run.bytes));
  sim::Pricer::Settings settings{.operation = {.collective = schedule::collective_named(run.collective),
                                               .root = run.root,
                                               .peer = run.peer,
                                               .in_place = run.in_place},
                                 .element = static_cast<double>(run.element)};
  for (const auto& [from, to] : run.pairs) settings.operation.pairs.push_back({from, to});
  sim::CollectiveQuestion question{.settings = std::move(settings),
                                   .group = group_of(machine(), run),
                                   .bytes = static_cast<double>(run.bytes),
                                   .blocks = {run.counts.begin(), run.counts.end()},
                                   .interval = false};
  if (!run.counts.empty())
    question.bytes =
        static_cast<double>(std::accumulate(run.counts.begin(), run.counts.end(), std::size_t{0}) * run.element);
  if (!run.config.empty()) question.config = sim::algorithm_config_named(run.config);
  if (question.config && question.config->dims.empty())
    question.config->dims = question.group.dims;  // the communicator does not know the machine's shape
  try {
    return answer(question, priced_).price.time;
  } catch (const std::invalid_argument& error) {
    throw Unsupported(fmt::format("sim:{}: {}", machine().name(), error.what()));
  }
}

}  // namespace trellis::device
