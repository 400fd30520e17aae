#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "tools/bench/report/result.h"
#include "tools/picture/axes.h"
#include "tools/picture/palette.h"
#include "tools/picture/svg.h"

namespace trellis::tools {

using namespace measure;
namespace {

using draw::Ink;
using draw::PlotAxis;
using draw::Point;
using draw::Svg;

constexpr double left = 76, right = 24, panel_width = 620, panel_height = 220, top = 84, between = 52;
constexpr double legend_line = 20, legend_gap = 48;

struct Dot {
  double bytes, value, low, high;  // low and high: the band around the value
};

struct Curve {
  std::string name;
  std::vector<Dot> time, bandwidth;
};

std::string time_text(double us) {
  if (us < 0.9995) return fmt::format("{:.4g} ns", us * 1e3);
  return us < 999.5     ? fmt::format("{:.4g} µs", us)
         : us < 999.5e3 ? fmt::format("{:.4g} ms", us * 1e-3)
                        : fmt::format("{:.4g} s", us * 1e-6);
}

std::string bandwidth_text(double gbps) {
  return gbps < 0.9995e-3 ? fmt::format("{:.4g} kB/s", gbps * 1e6)
         : gbps < 0.9995  ? fmt::format("{:.4g} MB/s", gbps * 1e3)
                          : fmt::format("{:.4g} GB/s", gbps);
}

std::vector<Curve> curves_of(const std::vector<BenchResult>& results) {
  using Key = std::tuple<kernels::DType, kernels::Reduction, ccl::Rank, bool>;
  const auto key = [](const BenchResult& r) { return Key(r.type, r.reduction, r.root, r.in_place); };
  bool types = false, operators = false, roots = false;
  for (const BenchResult& r : results) {
    const BenchResult& f = results.front();
    types = types || r.type != f.type;
    operators = operators || r.reduction != f.reduction;
    roots = roots || r.root != f.root;
  }
  // The iterations of one size, of all cycles together: they become one dot of the curve.
  struct Samples {
    const BenchResult* any = nullptr;
    std::vector<double> us;
  };
  std::map<Key, std::map<std::uint64_t, Samples>> by_size;
  for (const BenchResult& r : results) {
    Samples& all = by_size[key(r)][r.bytes];
    all.any = &r;
    all.us.insert(all.us.end(), r.measured.us.begin(), r.measured.us.end());
  }
  std::vector<Curve> all;
  for (const auto& [kind, sizes] : by_size) {
    Curve c;
    for (const auto& [size, samples] : sizes) {
      const BenchResult& r = *samples.any;
      const Statistics t = statistics_of(samples.us);
      c.name = (types ? fmt::format("{} ", kernels::name(r.type)) : "") +
               (operators ? fmt::format("{} ", kernels::name(r.reduction)) : "") +
               (roots ? fmt::format("root {} ", r.root) : "") + (r.in_place ? "in place" : "out of place");
      const double middle = t.percentile(50);
      if (r.bytes == 0 || middle <= 0) continue;
      const auto bytes = static_cast<double>(r.bytes);
      c.time.push_back({bytes, middle, std::max(t.percentile(10), 1e-4), t.percentile(90)});
      c.bandwidth.push_back({bytes, r.busbw_GBps(middle), r.busbw_GBps(t.percentile(90)),
                             r.busbw_GBps(std::max(t.percentile(10), 1e-4))});
    }
    if (!c.time.empty()) all.push_back(std::move(c));
  }
  return all;
}

struct Panel {
  double y;  // of its upper edge
  std::string title;
  std::vector<Dot> Curve::*dots;
  std::string (*words)(double);
};

void draw_panel(Svg& svg, const Panel& panel, const std::vector<Curve>& curves, const PlotAxis& x) {
  double least = 1e300, most = 1e-9;
  for (const Curve& c : curves)
    for (const Dot& d : c.*panel.dots) least = std::min(least, d.low), most = std::max(most, d.high);
  const PlotAxis y = draw::power_axis(std::max(least, 1e-9), most, 10, 8, panel.y + panel_height, panel.y);
  const auto place = [&](double bytes, double value) { return Point{x.at(bytes), y.at(value)}; };
  svg.text({left, panel.y - 10}, panel.title, "font-size=\"12\" font-weight=\"600\"");
  draw::draw_grid(
      svg, x, [](double bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); }, y, panel.words);
  svg.rect({left, panel.y}, {panel_width, panel_height}, 0, "class=\"frame\"");
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::vector<Dot>& dots = curves[i].*panel.dots;
    const Ink ink = draw::ink(static_cast<std::int64_t>(i));
    std::vector<Point> line, band;
    for (const Dot& d : dots) {
      line.push_back(place(d.bytes, d.value));
      band.push_back(place(d.bytes, std::max(d.high, d.low)));
    }
    for (std::size_t j = dots.size(); j-- > 0;)
      band.push_back(place(dots[j].bytes, std::min(dots[j].low, dots[j].high)));
    svg.open("series", curves[i].name);
    svg.path(draw::through(band) + "Z", fmt::format("class=\"band\" fill=\"{}\"", ink.colour));
    svg.path(draw::through(line),
             fmt::format("class=\"curve{}\" stroke=\"{}\"", ink.outlined ? " dashed" : "", ink.colour));
    for (const Dot& d : dots) {
      svg.open("dot", fmt::format("{}: {}, {}", curves[i].name, bytes_text(static_cast<std::uint64_t>(d.bytes)),
                                  panel.words(d.value)));
      svg.circle(place(d.bytes, d.value), 3, fmt::format("fill=\"{}\"", ink.colour));
      svg.close();
    }
    svg.close();
  }
}

}  // namespace

std::string bench_plot(const std::vector<BenchResult>& results) {
  const std::vector<Curve> curves = curves_of(results);
  if (curves.empty()) throw std::invalid_argument("--plot: nothing was measured");
  const BenchResult& first = results.front();
  const double second = top + panel_height + between + 24;
  const double legend = second + panel_height + legend_gap;
  const double height = legend + legend_line * static_cast<double>(curves.size()) + 10;
  const double width = left + panel_width + right;
  const std::string title = fmt::format("{} on {} ranks", schedule::name(first.collective), first.ranks);
  Svg svg(width, height, draw::chart_style, title);
  svg.text({26, 34}, title, "font-size=\"18\" font-weight=\"600\"");
  svg.text({26, 54}, "median of the iterations; the band is from p10 to p90", "class=\"dim\" font-size=\"12\"");
  double least = 1e300, most = 0;
  for (const Curve& c : curves)
    least = std::min(least, c.time.front().bytes), most = std::max(most, c.time.back().bytes);
  const PlotAxis x = draw::power_axis(least, most, 2, 10, left, left + panel_width);
  draw_panel(svg, {top + 10, "time", &Curve::time, time_text}, curves, x);
  draw_panel(svg, {second, "bus bandwidth", &Curve::bandwidth, bandwidth_text}, curves, x);
  svg.text({left + panel_width / 2, second + panel_height + 34}, "size of the larger buffer",
           "class=\"dim\" font-size=\"11\" text-anchor=\"middle\"");
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double y = legend + legend_line * static_cast<double>(i);
    const Ink ink = draw::ink(static_cast<std::int64_t>(i));
    svg.line({left, y - 4}, {left + 26, y - 4},
             fmt::format("class=\"curve{}\" stroke=\"{}\"", ink.outlined ? " dashed" : "", ink.colour));
    svg.circle({left + 13, y - 4}, 3, fmt::format("fill=\"{}\"", ink.colour));
    svg.text({left + 36, y}, curves[i].name, "font-size=\"12\"");
  }
  return std::move(svg).finish();
}

}  // namespace trellis::tools
