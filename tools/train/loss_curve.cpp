#include "tools/train/loss_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tools/picture/axes.h"
#include "tools/picture/palette.h"
#include "tools/picture/svg.h"

namespace trellis::tools {
namespace {

constexpr double left = 64, top = 48, width = 640, height = 300, right = 24, below = 56;

struct Range {
  double low = 1e300, high = -1e300;
  void add(double v) { low = std::min(low, v), high = std::max(high, v); }
};

}  // namespace

std::string loss_curve(const std::string& title, const std::vector<LossLine>& lines) {
  Range steps, losses;
  for (const LossLine& line : lines)
    for (const auto& [step, loss] : line.points)
      if (std::isfinite(loss)) steps.add(step), losses.add(loss);
  if (steps.low > steps.high) throw std::invalid_argument("a loss curve without a finite loss");
  const draw::PlotAxis x = draw::linear_axis(steps.low, steps.high, left, left + width);
  const draw::PlotAxis y = draw::linear_axis(losses.low, losses.high, top + height, top);
  draw::Svg svg(left + width + right, top + height + below, draw::chart_style, title);
  svg.text({left, 28}, title, R"(font-size="15" font-weight="600")");
  draw::draw_grid(
      svg, x, [](double v) { return fmt::format("{:.6g}", v); }, y, [](double v) { return fmt::format("{:.4g}", v); });
  svg.rect({left, top}, {width, height}, 0, R"(class="frame")");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<draw::Point> points;
    for (const auto& [step, loss] : lines[i].points)
      if (std::isfinite(loss)) points.push_back({x.at(step), y.at(loss)});
    const std::string_view colour = draw::ink(static_cast<std::int64_t>(i)).colour;
    svg.path(draw::through(points), fmt::format(R"(class="curve" stroke="{}")", colour));
    svg.text({left + 12 + 150 * static_cast<double>(i), top + height + 42}, lines[i].name,
             fmt::format(R"(font-size="12" style="fill:{}")", colour));
  }
  return std::move(svg).finish();
}

}  // namespace trellis::tools
