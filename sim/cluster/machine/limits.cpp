#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include "sim/cluster/machine/machine.h"
#include "text/refuse.h"

namespace trellis::sim {

std::vector<std::string> Machine::eras() const {
  std::set<std::string> found;
  for (const auto& [key, figure] : spec_.figures.all())
    if (key.starts_with("era.")) found.insert(key.substr(4, key.rfind('.') - 4));
  return {found.begin(), found.end()};
}

SoftwareOverheads Machine::overheads(std::string_view era) const {
  if (spec_.chip.empty() && era.empty()) return {};
  const std::string name(era.empty() ? std::string_view(spec_.era) : era);
  if (name.empty())
    text::refuse("{} has a chip and says no era: expected a line `era NAME`, of {}", spec_.name,
                 fmt::join(eras(), ", "));
  const Figures& f = spec_.figures;
  if (!f.has(fmt::format("era.{}.launch", name))) {
    const auto known = eras();
    text::refuse(
        "{} has no era '{}': {}", spec_.name, name,
        known.empty() ? "it has no chip, and no software" : fmt::format("expected {}", fmt::join(known, ", ")));
  }
  const auto of_era = [&](const char* key) { return f.time(fmt::format("era.{}.{}", name, key)); };
  const auto key = [&](const char* part) { return fmt::format("era.{}.{}", name, part); };
  const Time each = f.has(key("logical")) ? of_era("logical") : 0;
  const std::int32_t further = each > 0 && f.has("logical.cores") ? f.count("logical.cores") - 1 : 0;
  return {.launch = of_era("launch") + each * further,
          .handshake = of_era("handshake"),
          .reduce = of_era("reduce"),
          .message = of_era("message"),
          .away = of_era("away"),
          .counts = of_era("counts"),
          .dma_start = f.time("dma.start"),
          .semaphore = f.time("semaphore.latency"),
          .noise = f.has("noise.software") ? f.number("noise.software") : 0,
          .late = f.has(key("late")) ? f.number(key("late")) : 0};
}

double launch_growth(double late, Rank ranks) { return late == 0 ? 1 : std::pow(ranks / 8.0, late); }

Time SoftwareOverheads::launched(Rank ranks) const {
  return late == 0 ? launch : time_of_picoseconds(static_cast<double>(launch) * launch_growth(late, ranks));
}

// The sum of the rates of a chip's outgoing links. A link that several chips share counts with one chip's share.
double Machine::injection() const {
  double sum = 0;
  for (const auto& fabric : fabrics_) {
    if (fabric->attached()) {
      sum += fabric->ports().front().rate / fabric->ports().front().span;
      continue;
    }
    for (const Port& port : fabric->ports()) sum += port.rate;
  }
  return sum;
}

// Cuts the outermost fabric that has more than one unit. If that fabric is not attached(), each chip of a unit has
// links of its own to the chips at its position in other units, and the cut crosses the links of them all.
Bisection Machine::bisection() const {
  for (std::size_t i = fabrics_.size(); i-- > 0;) {
    const Fabric& fabric = *fabrics_[i];
    if (fabric.size() < 2) continue;
    Bisection cut = fabric.bisection();
    if (!fabric.attached()) cut.rate *= fabric.inner();
    return cut;
  }
  return {};
}

}  // namespace trellis::sim
