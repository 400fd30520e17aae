#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/cluster/machine/dims_text.h"
#include "sim/cluster/machine/machine_cluster.h"
#include "sim/hardware/figures/embedded_files.h"
#include "text/nearest.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

// Parses levels such as "cores:4/torus:4x4/clos:16". Their figures come from the data file `shapes`.
MachineSpec shape(std::string_view name) {
  MachineSpec spec = read_machine(name, data_text("machines", "shapes"));
  for (const std::string_view part : text::split(name, '/')) {
    const std::size_t colon = part.find(':');
    if (colon == part.npos) text::refuse("'{}' in '{}': expected a fabric and its size, as in ring:8", part, name);
    const std::string kind(part.substr(0, colon));
    if (has_data("machines", kind))
      text::refuse("'{}': {} is a machine, and takes no sizes: expected it alone, or as \"{} x 4\"", name, kind, kind);
    if (kind != "cores") fabric_kind(kind);
    spec.levels.push_back({kind, kind, dims_of(part.substr(colon + 1))});
  }
  return spec;
}

Defect defect(std::string_view text) {
  const std::vector<std::string_view> parts = text::split(text, ':');
  const auto complain = [&] {
    text::refuse("'{}': expected KEY=VALUE, dead:0-1, slow:0-1:0.5, nic:RANK:0.5, hbm:RANK:0.5 or straggler:RANK:0.5",
                 text);
  };
  const bool dead = parts[0] == "dead";
  if (parts.size() != (dead ? 2 : 3)) complain();
  const auto factor = dead ? std::optional<double>(0) : text::number<double>(parts[2], 0);
  const auto dash = parts[1].find('-');
  const bool link = dead || parts[0] == "slow";
  if (!factor || (dash == std::string_view::npos) == link) complain();
  const auto from = text::number<Rank>(parts[1].substr(0, dash), 0);
  const auto to = link ? text::number<Rank>(parts[1].substr(dash + 1), 0) : from;
  if (!from || !to) complain();
  Defect d{.from = *from, .to = *to, .factor = *factor};
  if (parts[0] == "nic")
    d.kind = Defect::Kind::nic;
  else if (parts[0] == "hbm")
    d.kind = Defect::Kind::hbm;
  else if (parts[0] == "straggler")
    d.kind = Defect::Kind::rank;
  else if (!link)
    complain();
  return d;
}

}  // namespace

std::optional<Chip> several(std::string_view& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == 0 || digits == name.size()) return {};
  std::size_t sign = name.find_last_not_of(' ', digits - 1);
  if (sign == name.npos || sign == 0 || (name[sign] != 'x' && name[sign] != '*')) return {};
  const auto count = text::number<Chip>(name.substr(digits), 1);
  if (!count) return {};
  name = name.substr(0, name.find_last_not_of(' ', sign - 1) + 1);
  return count;
}

MachineSpec joined(MachineSpec one, Chip count, std::string_view name) {
  if (one.cluster.kind.empty())
    text::refuse(
        "{} is not joined to others: a machine file says how by a line `cluster KIND NAME`, "
        "a host of hwloc's by a network interface",
        one.name);
  if (std::ranges::find(one.levels, one.cluster.name, &TopologyLevel::name) != one.levels.end())
    text::refuse("{} is not joined to others: its level '{}' is its cluster", one.name, one.cluster.name);
  one.levels.push_back({one.cluster.kind, one.cluster.name, {count}});
  one.name = name;
  return one;
}

// Throws if a known machine's name is followed by an x or * and something that is no count, as in "trn2.48xlarge x 0".
void expect_count(std::string_view name, const std::vector<std::string>& known) {
  const std::size_t sign = name.find_first_of("x*", name.find(' '));
  if (name.find(' ') == name.npos || sign == name.npos) return;
  if (std::ranges::find(known, name.substr(0, name.find(' '))) == known.end()) return;
  text::refuse("'{}': expected a whole number of machines from 1 to {}", name, std::numeric_limits<Chip>::max());
}

MachineSpec machine_spec(std::string_view name) {
  if (name.find(':') != name.npos) return shape(name);
  std::string_view one = name;
  const bool whole = has_data("machines", name);
  const auto count = whole ? std::nullopt : several(one);
  const auto names = machine_names();
  if (!count && !whole) expect_count(name, names);
  if (std::ranges::find(names, one) == names.end())
    text::refuse("no machine is called '{}': expected {}; or a shape like torus:4x4{}", one, fmt::join(names, ", "),
                 text::did_you_mean(one, names));
  MachineSpec spec = read_machine(one, data_text("machines", one));
  return count ? joined(std::move(spec), *count, name) : spec;
}

Machine machine_named(std::string_view name) { return Machine(machine_spec(name)); }

void what_if(MachineSpec& spec, std::string_view text) {
  if (const std::size_t sign = text.find('='); sign != text.npos)
    spec.figures.set(text.substr(0, sign), text.substr(sign + 1));
  else
    spec.defects.push_back(defect(text));
  spec.changes.emplace_back(text);
}

}  // namespace trellis::sim
