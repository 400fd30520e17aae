#include <fmt/format.h>

#include "measure/published/record.h"
#include "sim/cluster/machine/launch.h"
#include "sim/cluster/machine/machine.h"

// Records of the runtime alone: what it takes to start something, which is the launch of a collective too.
namespace trellis::measure {
namespace {

// What started it: a graph or kernel by one call, or a framework's own dispatch; none where it is neither.
std::optional<std::string> launch_named(const Record& r) {
  const auto about = [&](std::string_view word) { return r.id.find(word) != std::string::npos; };
  if (about("launch_floor") || about("host_minus_device") || about("wall_minus_active")) return "graph";
  if (about("graph_replay")) return "host";
  return std::nullopt;
}

std::optional<RecordAnswer> runtime(const Record& r, const std::vector<Record>&) {
  if (r.kind() != "runtime") return std::nullopt;
  const auto launch = launch_named(r);
  if (!launch) return RecordAnswer::no("the runtime's own work, of which no figure tells");
  const sim::Machine machine = sim::machine_named(r.id.find("trn1") == r.id.npos ? "trn2.48xlarge" : "trn1.32xlarge");
  const std::string era = sim::era_launched(machine, "2026", *launch), key = fmt::format("era.{}.launch", era);
  const sim::Figure& figure = machine.spec().figures.at(key);
  const std::string by = fmt::format("figure {}", key), kind = sim::collective_error(era);
  if (const auto unit = seconds_of(r.unit))
    return RecordAnswer{.simulated = figure.value / *unit,
                        .range = {figure.value / *unit, figure.value / *unit},
                        .launch = Launch{key, figure.value / *unit, {figure.low / *unit, figure.high / *unit}},
                        .kind = kind,
                        .by = by};
  if (r.unit != "step/s") return RecordAnswer::no(fmt::format("unit '{}'", r.unit));
  return RecordAnswer{.simulated = 1 / figure.value,
                      .range = {1 / figure.high, 1 / figure.low},
                      .kind = kind,
                      .by = by + ", of a step"};
}

const RecordModel registered("runtime", runtime);

}  // namespace
}  // namespace trellis::measure
