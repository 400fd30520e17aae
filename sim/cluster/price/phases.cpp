#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/cluster/price/timeline.h"

namespace trellis::sim {
namespace {

// "neuronlink x" of "neuronlink x+", "efa" of "efa host out": the level's name, and the dimension where it has several.
std::string link_words(const Machine& machine, std::string_view port) {
  for (const TopologyLevel& level : machine.spec().levels) {
    if (!port.starts_with(level.name + " ")) continue;
    const bool axes = level.kind == "torus" || level.kind == "mesh";
    return axes && level.dims.size() > 1 ? std::string(port.substr(0, port.size() - 1)) : level.name;
  }
  return std::string(port);
}

class Names {
 public:
  Names(const SimulationRun& run, const Machine& machine) : run_(run), machine_(machine) {}

  std::string of(std::int64_t move) {
    const SimulationRun::Place where = run_.place(move);
    // A transfer that only brings in data for a sum belongs to the sum.
    const char* does = where.move->adds || where.move->staged ? "sum" : "copy";
    if (where.peer < 0) return fmt::format("{} in memory", does);
    used_.clear();
    machine_.route(where.rank, where.peer, used_);
    std::set<std::string> over;
    for (ResourceId r : used_) over.insert(link(r));
    if (over.empty()) return fmt::format("{} within chips", does);
    return fmt::format("{} over {}", does, fmt::join(over, " and "));
  }

 private:
  const std::string& link(ResourceId r) {
    const std::string_view port = machine_.port_name(r);
    const auto found = links_.find(port);
    return found != links_.end() ? found->second
                                 : links_.emplace(std::string(port), link_words(machine_, port)).first->second;
  }

  const SimulationRun& run_;
  const Machine& machine_;
  std::vector<ResourceId> used_;
  std::map<std::string, std::string, std::less<>> links_;
};

}  // namespace

std::vector<CollectivePhase> phases_of(const SimulationRun& run, const Machine& machine,
                                       const std::vector<std::int64_t>& critical, Time end) {
  const auto& traces = run.traces();
  Names names(run, machine);
  std::map<std::string, CollectivePhase> phases;
  for (std::int64_t i = 0; i < std::ssize(traces); ++i) {
    if (run.bytes(i) <= 0) continue;
    CollectivePhase& phase = phases[names.of(i)];
    phase.from = std::min(phase.from, traces[i].ready);
    phase.to = std::max(phase.to, traces[i].end + run.latency(i));
    phase.bytes += run.bytes(i);
    ++phase.transfers;
  }
  for (std::size_t i = 0; i < critical.size(); ++i) {
    const Time until = i + 1 < critical.size() ? traces[critical[i + 1]].ready : end;
    if (const auto found = phases.find(names.of(critical[i])); found != phases.end())
      found->second.on_path += until - traces[critical[i]].ready;
  }
  std::vector<CollectivePhase> all;
  for (auto& [name, phase] : phases) {
    if (phase.to == phase.from) continue;  // copies on a machine whose memory takes no time
    phase.name = name;
    all.push_back(std::move(phase));
  }
  std::ranges::stable_sort(all, {}, [](const CollectivePhase& p) { return std::pair(p.from, p.to); });
  return all;
}

}  // namespace trellis::sim
