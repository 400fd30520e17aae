#include "tools/train/loss_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tools/picture/palette.h"
#include "tools/picture/svg.h"

namespace trellis::tools {
namespace {

constexpr double left = 64, top = 48, width = 640, height = 300, right = 24, below = 56;

// A round number of which four to ten make up the range.
double tick_of(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 4)));
  for (double step : {1.0, 2.0, 5.0})
    if (range / (step * power) <= 8) return step * power;
  return 10 * power;
}

struct Range {
  double low = 1e300, high = -1e300;
  void add(double v) { low = std::min(low, v), high = std::max(high, v); }
  void widen() {
    if (high - low < 1e-9) high = low + 1;
  }
};

}  // namespace

std::string loss_curve(const std::string& title, const std::vector<LossLine>& lines) {
  Range x, y;
  for (const LossLine& line : lines)
    for (const auto& [step, loss] : line.points)
      if (std::isfinite(loss)) x.add(step), y.add(loss);
  if (x.low > x.high) throw std::invalid_argument("a loss curve without a finite loss");
  x.widen();
  y.widen();
  const auto x_at = [&](double v) { return left + width * (v - x.low) / (x.high - x.low); };
  const auto y_at = [&](double v) { return top + height * (1 - (v - y.low) / (y.high - y.low)); };
  draw::Svg svg(left + width + right, top + height + below, draw::chart_style, title);
  svg.rect({0, 0}, {left + width + right, top + height + below}, 0, R"(class="paper")");
  svg.text({left, 28}, title, R"(font-size="15" font-weight="600")");
  for (double step = tick_of(y.high - y.low), v = std::ceil(y.low / step) * step; v <= y.high + 1e-12; v += step) {
    svg.line({left, y_at(v)}, {left + width, y_at(v)}, R"(class="grid")");
    svg.text({left - 8, y_at(v) + 4}, fmt::format("{:.4g}", v), R"(font-size="11" text-anchor="end" class="dim")");
  }
  for (double step = tick_of(x.high - x.low), v = std::ceil(x.low / step) * step; v <= x.high + 1e-12; v += step)
    svg.text({x_at(v), top + height + 18}, fmt::format("{:.6g}", v),
             R"(font-size="11" text-anchor="middle" class="dim")");
  svg.rect({left, top}, {width, height}, 0, R"(class="frame")");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string path;
    for (const auto& [step, loss] : lines[i].points)
      if (std::isfinite(loss)) path += fmt::format("{}{:.2f} {:.2f}", path.empty() ? "M" : "L", x_at(step), y_at(loss));
    const std::string_view colour = draw::ink(static_cast<std::int64_t>(i)).colour;
    svg.path(path, fmt::format(R"(class="curve" stroke="{}")", colour));
    svg.text({left + 12 + 150 * static_cast<double>(i), top + height + 42}, lines[i].name,
             fmt::format(R"(font-size="12" style="fill:{}")", colour));
  }
  return std::move(svg).finish();
}

}  // namespace trellis::tools
