#include "sim/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "sim/figure_units.h"

namespace trellis::sim {
namespace {

// A fitted figure without a range is as sure as its fit. One record is met exactly by any figure that is fitted to it,
// so that where the data says nothing of what was missed, this part of it either way.
constexpr double usual_residual = 0.15;

std::string shown(double value, Dimension dimension) {
  const Unit& unit = unit_for(value, dimension);
  return fmt::format("{:.4g}{}{}", value / unit.size, unit.name.empty() ? "" : " ", unit.name);
}

// Only what this price could hang on is tried.
bool matters(std::string_view key, const MachineSpec& spec, std::string_view era) {
  if (key.starts_with("era.")) return key.starts_with(fmt::format("era.{}.", era));
  for (const Level& level : spec.levels)
    if (key.starts_with(level.name + ".")) return true;
  return !spec.chip.empty() && (key.starts_with("collective.") || key.starts_with("hbm.") || key == "dma.start" ||
                                key == "dma.engine.rate" || key == "semaphore.latency");
}

// All that software adds but for what comes once, before anything moves.
auto by_step(const Overheads& o) {
  return std::tuple(o.handshake, o.reduce, o.message, o.away, o.dma_start, o.semaphore, o.noise);
}

bool same_resources(const Machine& one, const Machine& other) {
  if (one.ranks() != other.ranks() || one.resources() != other.resources()) return false;
  for (ResourceId r = 0; r < one.resources(); ++r)
    if (one.rate(r) != other.rate(r) || one.latency(r) != other.latency(r) || one.span(r) != other.span(r))
      return false;
  return true;
}

// By how much a schedule starts later on the other machine, where all that comes after is the same.
std::optional<Time> starts_later(const Pattern& pattern, const PriceOptions& options, const Machine& one,
                                 const Machine& other) {
  const Overheads a = one.overheads(options.era), b = other.overheads(options.era);
  if (options.noise || by_step(a) != by_step(b) || !same_resources(one, other)) return std::nullopt;
  std::vector<ResourceId> way, other_way;
  for (Rank r = 0; r < pattern.ranks(); ++r)
    for (const Rank named : pattern.classes()[pattern.class_of(r)].peers) {
      const Rank peer = options.place(pattern.peer(r, named));
      way.clear(), other_way.clear();
      one.route(options.place(r), peer, way), other.route(options.place(r), peer, other_way);
      if (way != other_way) return std::nullopt;
    }
  return b.launch - a.launch + (uneven(pattern.task().collective) ? b.counts - a.counts : 0);
}

}  // namespace

Interval interval(const Pattern& pattern, const MachineSpec& spec, const PriceOptions& options, Time middle) {
  PriceOptions quick = options;
  quick.explain = false;
  const Machine usual(spec);
  return interval(spec, options.era, middle, [&](const Machine& machine) {
    const std::optional<Time> later = starts_later(pattern, options, usual, machine);
    return later ? middle + *later : price(pattern, machine, quick).time;
  });
}

Interval interval(const MachineSpec& spec, std::string_view asked_era, Time middle,
                  const std::function<Time(const Machine&)>& time_on) {
  Interval found{.low = middle, .high = middle};
  const std::string_view era = asked_era.empty() ? spec.era : asked_era;
  double below = 0, above = 0;
  for (const auto& [key, figure] : spec.figures.all()) {
    if (figure.mark == Mark::documented || !matters(key, spec, era)) continue;
    double ends[] = {figure.low, figure.high};
    if (figure.low == figure.high) {
      if (figure.mark == Mark::assumed || figure.value == 0) continue;
      const double residual = figure.residual > 0 ? figure.residual : usual_residual;
      ends[0] = figure.value * (1 - residual), ends[1] = figure.value * (1 + residual);
    }
    Sway sway{key, shown(ends[0], figure.dimension), shown(ends[1], figure.dimension), middle, middle};
    for (double end : ends) {
      MachineSpec other = spec;
      other.figures.set(key, end);
      const Time time = time_on(Machine(std::move(other)));
      if (time == forever) {
        found.all_tried = false;
        continue;
      }
      sway.low = std::min(sway.low, time), sway.high = std::max(sway.high, time);
    }
    below += std::pow(in_us(middle - sway.low), 2), above += std::pow(in_us(sway.high - middle), 2);
    if (sway.width() > 0) found.sways.push_back(std::move(sway));
  }
  found.low -= static_cast<Time>(std::sqrt(below) * us);
  found.high += static_cast<Time>(std::sqrt(above) * us);
  std::ranges::stable_sort(found.sways, std::greater<>(), &Sway::width);
  return found;
}

}  // namespace trellis::sim
