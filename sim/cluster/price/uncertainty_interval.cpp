#include "sim/cluster/price/uncertainty_interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <tuple>

#include "sim/hardware/figures/figure_units.h"
#include "sim/hardware/figures/model_error_range.h"
#include "sim/hardware/thread_pool.h"
#include "sim/hardware/time/time_too_long.h"

namespace trellis::sim {
namespace {

// The relative error that is assumed for a fitted figure which states neither a range nor a residual: a fit to a single
// record meets it exactly, so the data says nothing of the error.
constexpr double usual_residual = 0.15;

std::string shown(double value, Dimension dimension) {
  const Unit& unit = unit_for(value, dimension);
  return fmt::format("{:.4g}{}{}", value / unit.size, unit.name.empty() ? "" : " ", unit.name);
}

// Whether the price of a collective may depend on the figure.
bool matters(std::string_view key, const MachineSpec& spec, std::string_view era) {
  if (key.starts_with("era.")) return key.starts_with(fmt::format("era.{}.", era));
  for (const TopologyLevel& level : spec.levels)
    if (key.starts_with(level.name + ".")) return true;
  return !spec.chip.empty() && (key.starts_with("collective.") || key.starts_with("hbm.") || key == "dma.start" ||
                                key == "dma.engine.rate" || key == "semaphore.latency");
}

// All software overheads except those that occur once, before anything moves.
auto by_step(const SoftwareOverheads& o) {
  return std::tuple(o.handshake, o.reduce, o.message, o.away, o.dma_start, o.semaphore, o.noise);
}

bool same_resources(const Machine& one, const Machine& other) {
  if (one.ranks() != other.ranks() || one.resources() != other.resources()) return false;
  for (ResourceId r = 0; r < one.resources(); ++r)
    if (one.rate(r) != other.rate(r) || one.latency(r) != other.latency(r) || one.span(r) != other.span(r))
      return false;
  return true;
}

// How much later a schedule starts on the other machine, if all that comes after is the same; none if it is not.
std::optional<Time> starts_later(const CompiledSchedule& pattern, const PriceOptions& options, const Machine& one,
                                 const SoftwareOverheads& a, const Machine& other) {
  const SoftwareOverheads b = other.overheads(options.era);
  if (options.noise || by_step(a) != by_step(b) || !same_resources(one, other)) return std::nullopt;
  std::vector<ResourceId> route, other_route;
  for (Rank r = 0; r < pattern.ranks(); ++r)
    for (const Rank named : pattern.classes()[pattern.class_of(r)].peers) {
      const Rank peer = options.place(pattern.peer(r, named));
      route.clear(), other_route.clear();
      one.route(options.place(r), peer, route), other.route(options.place(r), peer, other_route);
      if (route != other_route) return std::nullopt;
    }
  const Time sooner = a.launched(pattern.ranks()), later = b.launched(pattern.ranks());
  return later - sooner + (uneven(pattern.task().operation.collective) ? b.counts - a.counts : 0);
}

// A figure at one end of its range. The two ends of a figure follow each other in the list.
struct Trial {
  std::string key;
  double end = 0;
  std::string text;
  Time time = forever;
};

}  // namespace

Time low_end(Time middle, std::span<const Time> lows) {
  if (middle <= 0) return middle;
  double squares = 0, left = 1;
  for (const Time low : lows) {
    squares += std::pow(in_us(middle - low), 2);
    left *= static_cast<double>(std::max<Time>(low, 0)) / static_cast<double>(middle);
  }
  return middle - static_cast<Time>(std::min(std::sqrt(squares) * us, static_cast<double>(middle) * (1 - left)));
}

UncertaintyInterval interval(const CompiledSchedule& pattern, const MachineSpec& spec, const PriceOptions& options,
                             Time middle) {
  PriceOptions quick = options;
  quick.explain = false;
  const Machine usual(spec);
  const SoftwareOverheads overheads = usual.overheads(options.era);
  return interval(spec, options.era, middle, [&](const Machine& machine) {
    const std::optional<Time> later = starts_later(pattern, options, usual, overheads, machine);
    return later ? middle + *later : price(pattern, machine, quick).time;
  });
}

UncertaintyInterval interval(const MachineSpec& spec, std::string_view asked_era, Time middle,
                             const std::function<Time(const Machine&)>& time_on,
                             const std::function<bool(const Machine&)>& computes_alike) {
  const std::string_view era = asked_era.empty() ? spec.era : asked_era;
  std::vector<Trial> trials;
  const auto changes_computations = [&](const std::string& key, std::span<const double> ends) {
    return computes_alike && !spec.chip.empty() && std::ranges::any_of(ends, [&](double end) {
             MachineSpec other = spec;
             other.figures.set(key, end);
             return !computes_alike(Machine(std::move(other)));
           });
  };
  for (const auto& [key, figure] : spec.figures.all()) {
    if (figure.mark == FigureProvenance::documented) continue;
    double ends[] = {figure.low, figure.high};
    if (figure.low == figure.high) {
      if (figure.mark == FigureProvenance::assumed || figure.value == 0) continue;
      const double residual = figure.residual > 0 ? figure.residual : usual_residual;
      ends[0] = figure.value * (1 - residual), ends[1] = figure.value * (1 + residual);
    }
    if (!matters(key, spec, era) && !changes_computations(key, ends)) continue;
    for (const double end : ends) trials.push_back({key, end, shown(end, figure.dimension)});
  }
  std::atomic<std::size_t> next = 0;
  ThreadPool(std::min(processors(), static_cast<int>(trials.size()))).run([&](int) {
    for (std::size_t i = next++; i < trials.size(); i = next++) {
      MachineSpec other = spec;
      other.figures.set(trials[i].key, trials[i].end);
      try {
        trials[i].time = time_on(Machine(std::move(other)));
      } catch (const TimeTooLong&) {  // counts as not tried, as if it had been stopped
      }
    }
  });
  UncertaintyInterval found{.low = middle, .high = middle};
  std::vector<Time> lows;
  double above = 0;
  for (std::size_t i = 0; i < trials.size(); i += 2) {
    Sensitivity sensitivity{trials[i].key, trials[i].text, trials[i + 1].text, middle, middle};
    for (const Trial& end : {trials[i], trials[i + 1]}) {
      if (end.time == forever) {
        found.all_tried = false;
        continue;
      }
      sensitivity.low = std::min(sensitivity.low, end.time), sensitivity.high = std::max(sensitivity.high, end.time);
    }
    lows.push_back(sensitivity.low);
    above += std::pow(in_us(sensitivity.high - middle), 2);
    if (sensitivity.width() > 0) found.sensitivities.push_back(std::move(sensitivity));
  }
  found.low = low_end(middle, lows);
  found.high += static_cast<Time>(std::sqrt(above) * us);
  std::ranges::stable_sort(found.sensitivities, std::greater<>(), &Sensitivity::width);
  return found;
}

UncertaintyInterval with_model_error(UncertaintyInterval interval, Time middle, std::string_view kind) {
  const ModelErrorRange error = error_range(kind);
  const auto at = [middle](double factor) { return static_cast<Time>(static_cast<double>(middle) * factor); };
  Sensitivity model{fmt::format("error.{}", kind), fmt::format("{:.3g}", error.low), fmt::format("{:.3g}", error.high),
                    at(error.low), at(error.high)};
  if (model.width() == 0 || middle <= 0) return interval;
  const auto value = [](Time t) { return static_cast<double>(t); };
  const ValueRange range = widened(value(middle), {value(interval.low), value(interval.high)}, error);
  interval.low = static_cast<Time>(range.low), interval.high = static_cast<Time>(range.high);
  interval.sensitivities.push_back(std::move(model));
  std::ranges::stable_sort(interval.sensitivities, std::greater<>(), &Sensitivity::width);
  return interval;
}

}  // namespace trellis::sim
