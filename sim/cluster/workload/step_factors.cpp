#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/cluster/workload/step_price.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

constexpr std::string_view software = "software.", exposed = "step.exposed.";

// 2.21.1 -> {2, 21, 1}
std::array<int, 3> release(std::string_view word) {
  std::array<int, 3> numbers{};
  const std::vector<std::string_view> parts = text::split(word, '.');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto value = text::number<int>(parts[i], 0);
    if (!value || i == numbers.size()) text::refuse("software {}: expected a release, as 2.21 or 2.13.1", word);
    numbers[i] = *value;
  }
  return numbers;
}

// Returns the figure. Throws invalid_argument if it is below `least`, or equal to it where `above` is set.
double at_least(const Figures& f, const std::string& key, double least, bool above = false) {
  const double value = f.number(key);
  if (!(value >= least) || (above && value == least))
    text::refuse("{} is {}: expected {} {}", key, value, above ? "more than" : "at least", least);
  return value;
}

double software_factor(const Machine& machine, const std::string& named) {
  const Figures& f = machine.spec().figures;
  const std::vector<std::string> all = software_releases(machine);
  if (all.empty()) return 1;
  std::string use = all.back();
  if (!named.empty()) {
    const auto asked = release(named);
    if (asked < release(all.front()))
      text::refuse("software {}: expected {} or later; known are {}", named, all.front(), fmt::join(all, ", "));
    for (const std::string& each : all)
      if (release(each) <= asked) use = each;
  }
  const double level = f.has("step.level") ? at_least(f, "step.level", 0, true) : 1;
  return level / at_least(f, fmt::format("{}{}", software, use), 0, true);
}

}  // namespace

std::vector<std::string> software_releases(const Machine& machine) {
  std::vector<std::string> all;
  for (const auto& [key, figure] : machine.spec().figures.all())
    if (key.starts_with(software)) all.push_back(key.substr(software.size()));
  std::ranges::sort(all, {}, release);
  return all;
}

// Where there is a context axis, gradients are exchanged over data and context together, by the communicator
// `sharding`. The data axis's figure holds for it, too.
std::string exposed_figure_of(std::string_view communicator, const Machine& machine) {
  for (const std::string_view name : {communicator, std::string_view(communicator == "sharding" ? "data" : "")})
    if (const std::string key = fmt::format("{}{}", exposed, name); !name.empty() && machine.spec().figures.has(key))
      return key;
  return "";
}

Rank ranks_of_host(const Machine& machine) {
  std::vector<ResourceId> route;
  for (Rank r = machine.cores(); r < machine.ranks(); r += machine.cores()) {
    route.clear();
    machine.route(0, r, route);
    if (std::ranges::any_of(route, [&](ResourceId id) { return machine.between_hosts(id); })) return r;
  }
  return machine.ranks();
}

StepFactors factors_of(const ExecutionGraph& graph, const Machine& machine, const StepOptions& options) {
  const Figures& f = machine.spec().figures;
  StepFactors factors;
  factors.software = software_factor(machine, options.software);
  if (graph.ranks > ranks_of_host(machine) && f.has("step.hosts"))
    factors.hosts = 1 + at_least(f, "step.hosts", -1, true);
  for (const schedule::GraphCommunicator& c : graph.communicators)
    if (const std::string key = exposed_figure_of(c.name, machine); !key.empty())
      factors.exposed[c.name] = at_least(f, key, 0);
  if (f.has("step.spread")) factors.spread = at_least(f, "step.spread", 1);
  return factors;
}

}  // namespace trellis::sim
