#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/hardware/report/html_parts.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "sim/hardware/timeline/text_buffer.h"

namespace trellis::sim {
namespace {

constexpr double wide = 640, high = 360, left = 96, right = 20, top = 16, bottom = 44;

// A logarithmic axis of whole decades.
class Axis {
 public:
  Axis(double least, double most, double from, double to)
      : low_(std::floor(std::log10(least))), high_(std::ceil(std::log10(most))), from_(from), to_(to) {
    if (high_ <= low_) high_ = low_ + 1;
  }
  double at(double value) const {
    return from_ + (to_ - from_) * std::clamp((std::log10(value) - low_) / (high_ - low_), 0.0, 1.0);
  }
  int low() const { return static_cast<int>(low_); }
  int high() const { return static_cast<int>(high_); }

 private:
  double low_, high_, from_, to_;
};

void put_axes(Text& text, const Axis& x, const Axis& y) {
  for (int e = x.low(); e <= x.high(); ++e) {
    const double at = x.at(std::pow(10, e));
    put(text, "<line class='grid' x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}'/>", at, top, high - bottom);
    put(text, "<text x='{:.1f}' y='{}' text-anchor='middle'>{:g}</text>\n", at, high - bottom + 16, std::pow(10, e));
  }
  for (int e = y.low(); e <= y.high(); ++e) {
    const double at = y.at(std::pow(10, e));
    put(text, "<line class='grid' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/>", left, wide - right, at);
    put(text, "<text x='{}' y='{:.1f}' text-anchor='end'>{}/s</text>\n", left - 6, at + 4,
        flops_words(std::pow(10, e)));
  }
  put(text, "<text x='{}' y='{}' text-anchor='middle'>flops a byte</text>\n", (left + wide - right) / 2, high - 8);
}

void put_roof(Text& text, const Axis& x, const Axis& y, const RooflinePoint& p, double peak, std::size_t color) {
  // Along the memory's slope to the ridge point, then flat at the peak.
  const double rate = p.roof.bytes_per_second, end = std::pow(10, x.high());
  const double begin = std::clamp(std::pow(10, y.low()) / rate, std::pow(10, x.low()), end);
  const double ridge = peak > 0 ? std::clamp(peak / rate, begin, end) : end;
  const auto height = [&](double intensity) { return peak > 0 ? std::min(peak, intensity * rate) : intensity * rate; };
  put(text, "<polyline class='roof c{}' points='", color);
  for (const double intensity : {begin, ridge, end})
    put(text, "{:.1f},{:.1f} ", x.at(intensity), y.at(height(intensity)));
  put(text, "'/>\n");
  put(text,
      "<circle class='c{}' cx='{:.1f}' cy='{:.1f}' r='5'><title>{}: {:.4g} flops a byte, {}/s of {}/s</title></circle>",
      color, x.at(p.intensity), y.at(p.attained), escaped_html(p.roof.name), p.intensity, flops_words(p.attained),
      flops_words(p.attainable));
  put(text, "<text class='c{}' x='{}' y='{}'>{} {}</text>\n", color, left + 8,
      top + 16 + 16 * static_cast<double>(color), escaped_html(p.roof.name), rate_words(rate));
}

}  // namespace

std::string roofline_svg(const Summary& summary) {
  std::vector<RooflinePoint> placed;
  for (const RooflinePoint& p : summary.roofline)
    if (p.intensity > 0 && p.attained > 0) placed.push_back(p);
  if (placed.empty()) return {};
  double least_x = placed[0].intensity, most_x = least_x, least_y = placed[0].attained, most_y = least_y;
  for (const RooflinePoint& p : placed) {
    const double ridge = summary.peak_flops > 0 ? summary.peak_flops / p.roof.bytes_per_second : p.intensity;
    least_x = std::min({least_x, p.intensity / 3, ridge / 10});
    most_x = std::max({most_x, p.intensity * 3, ridge * 10});
    least_y = std::min(least_y, p.attained / 3);
    most_y = std::max({most_y, p.attained, summary.peak_flops});
  }
  const Axis x(least_x, most_x, left, wide - right), y(least_y, most_y, high - bottom, top);
  Text text;
  put(text, "<svg id='roofline' viewBox='0 0 {} {}' role='img' aria-label='roofline'>\n", wide, high);
  put_axes(text, x, y);
  for (std::size_t i = 0; i < placed.size(); ++i) put_roof(text, x, y, placed[i], summary.peak_flops, i % 6);
  put(text, "</svg>\n");
  return fmt::to_string(text);
}

}  // namespace trellis::sim
