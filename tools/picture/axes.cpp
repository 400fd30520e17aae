#include "tools/picture/axes.h"

#include <algorithm>
#include <cmath>

namespace trellis::tools::draw {
namespace {

double round_step(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 4)));
  for (double step : {1.0, 2.0, 5.0})
    if (range / (step * power) <= 8) return step * power;
  return 10 * power;
}

}  // namespace

double PlotAxis::at(double value) const {
  const double v = std::clamp(value, low, high);
  return from + (to - from) * (logarithmic ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low));
}

std::vector<double> PlotAxis::ticks() const {
  std::vector<double> all;
  if (logarithmic)
    for (double v = low; v <= high * 1.001; v *= step) all.push_back(v);
  if (logarithmic) return all;
  const double first = std::ceil(low / step) * step;
  const auto tick = [&](int i) { return first + i * step; };
  for (int i = 0; tick(i) <= high + 1e-12; ++i)
    if (all.empty() || tick(i) > all.back()) all.push_back(tick(i));
  return all;
}

PlotAxis linear_axis(double low, double high, double from, double to) {
  if (high - low < 1e-9) high = low + std::max(1.0, std::abs(low) * 1e-9);
  return {low, high, from, to, round_step(high - low)};
}

PlotAxis power_axis(double low, double high, double base, int most, double from, double to) {
  const int first = static_cast<int>(std::floor(std::log(low) / std::log(base) + 1e-9));
  const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log(high) / std::log(base) - 1e-9)));
  return {std::pow(base, first), std::pow(base, last), from, to, std::pow(base, (last - first + most) / most), true};
}

void draw_grid(Svg& svg, const PlotAxis& x, const Words& x_words, const PlotAxis& y, const Words& y_words) {
  for (const double tick : y.ticks()) {
    svg.line({x.from, y.at(tick)}, {x.to, y.at(tick)}, R"(class="grid")");
    svg.text({x.from - 8, y.at(tick) + 4}, y_words(tick), R"(class="dim" font-size="11" text-anchor="end")");
  }
  for (const double tick : x.ticks()) {
    svg.line({x.at(tick), y.to}, {x.at(tick), y.from}, R"(class="grid")");
    svg.text({x.at(tick), y.from + 16}, x_words(tick), R"(class="dim" font-size="11" text-anchor="middle")");
  }
}

}  // namespace trellis::tools::draw
