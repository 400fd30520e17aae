#include "sim/hardware/figures/figure_units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>
#include <vector>

#include "text/number_parsing.h"

namespace trellis::sim {
namespace {

constexpr double kib = 1024, mib = kib * kib, gib = mib * kib, tib = gib * kib;

constexpr std::array all_units = {
    Unit{"", Dimension::number, 1},          Unit{"ps", Dimension::time, 1e-12},
    Unit{"ns", Dimension::time, 1e-9},       Unit{"us", Dimension::time, 1e-6},
    Unit{"ms", Dimension::time, 1e-3},       Unit{"s", Dimension::time, 1},
    Unit{"B", Dimension::bytes, 1},          Unit{"KB", Dimension::bytes, 1e3},
    Unit{"KiB", Dimension::bytes, kib},      Unit{"MB", Dimension::bytes, 1e6},
    Unit{"MiB", Dimension::bytes, mib},      Unit{"GB", Dimension::bytes, 1e9},
    Unit{"GiB", Dimension::bytes, gib},      Unit{"TB", Dimension::bytes, 1e12},
    Unit{"TiB", Dimension::bytes, tib},      Unit{"B/s", Dimension::rate, 1},
    Unit{"KB/s", Dimension::rate, 1e3},      Unit{"KiB/s", Dimension::rate, kib},
    Unit{"MB/s", Dimension::rate, 1e6},      Unit{"MiB/s", Dimension::rate, mib},
    Unit{"Gbit/s", Dimension::rate, 1.25e8}, Unit{"B/ns", Dimension::rate, 1e9},
    Unit{"GB/s", Dimension::rate, 1e9},      Unit{"GiB/s", Dimension::rate, gib},
    Unit{"TB/s", Dimension::rate, 1e12},     Unit{"TiB/s", Dimension::rate, tib},
    Unit{"Hz", Dimension::frequency, 1},     Unit{"KHz", Dimension::frequency, 1e3},
    Unit{"MHz", Dimension::frequency, 1e6},  Unit{"GHz", Dimension::frequency, 1e9},
    Unit{"cycles", Dimension::cycles, 1},
};

}  // namespace

const Unit* find_unit(std::string_view name) {
  const auto* found = std::ranges::find(all_units, name, &Unit::name);
  return found == all_units.end() ? nullptr : found;
}

std::string unit_names() {
  std::vector<std::string_view> names;
  for (const Unit& unit : all_units)
    if (!unit.name.empty()) names.push_back(unit.name);
  return fmt::format("none, {}", fmt::join(names, ", "));
}

// Divide: 300 / 1e9 is the double 300e-9, but 300 * 1e-9 is its neighbour.
double in_own_unit(double number, const Unit& unit) {
  return unit.size < 1 ? number / std::round(1 / unit.size) : number * unit.size;
}

const Unit& own_unit(Dimension dimension) {
  return *std::ranges::find_if(all_units, [&](const Unit& u) { return u.dimension == dimension && u.size == 1; });
}

std::optional<std::string> spelled(double value, const Unit& unit) {
  const double number = unit.size < 1 ? value * std::round(1 / unit.size) : value / unit.size;
  // The value and this number were both rounded. If the value came from a number of at most 15 digits, rounding to 15
  // gives that number back.
  for (std::string text : {fmt::format("{:.15g}", number), fmt::format("{}", number)})
    if (const auto back = text::finite_number(text); back && in_own_unit(*back, unit) == value) return text;
  return {};
}

const Unit& unit_for(double value, Dimension dimension) {
  const Unit* best = &own_unit(dimension);
  std::size_t least = fmt::format("{}", value).size();
  for (const Unit& unit : all_units) {
    if (unit.dimension != dimension || std::abs(value) < unit.size) continue;
    const auto text = spelled(value, unit);
    if (!text || text->size() > least) continue;
    best = &unit;
    least = text->size();
  }
  return *best;
}

}  // namespace trellis::sim
