#include <fmt/format.h>

#include "measure/published/record.h"
#include "sim/cluster/machine/launch_mode.h"
#include "sim/cluster/machine/machine.h"

// Records of the time that the runtime takes to start work. They are answered with the figures that are also the launch
// times of collectives.
namespace trellis::measure {
namespace {

// How the work was launched: "graph" for a graph or kernel that one call starts, "host" for a framework's own dispatch;
// none where it is neither.
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
  const double growth = sim::launch_growth(machine.overheads(era).late, 1);
  if (const auto unit = seconds_of(r.unit)) {
    LaunchOverhead one{key, figure.value / *unit, {figure.low / *unit, figure.high / *unit}};
    one.growth = growth;
    const std::string further = fmt::format("era.{}.logical", era);
    if (machine.spec().figures.has(further))  // one core, where the record says no more
      one.further = (r.count("lnc").value_or(1) - 1) * machine.spec().figures.at(further).value / *unit;
    const double value = one.with(one.value, 0);
    return RecordAnswer{.simulated = value, .range = {value, value}, .launch = std::move(one), .kind = kind, .by = by};
  }
  if (r.unit != "step/s") return RecordAnswer::no(fmt::format("unit '{}'", r.unit));
  return RecordAnswer{.simulated = 1 / (figure.value * growth),
                      .range = {1 / (figure.high * growth), 1 / (figure.low * growth)},
                      .kind = kind,
                      .by = by + ", of a step"};
}

const RegisteredRecordModel registered("runtime", runtime);

}  // namespace
}  // namespace trellis::measure
