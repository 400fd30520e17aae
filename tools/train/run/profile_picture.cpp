#include "tools/train/run/profile_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/picture/palette.h"
#include "tools/picture/svg.h"

namespace trellis::tools {
namespace {

constexpr const char* words[] = {"forward", "backward", "recompute",
                                 "update",  "waits",    "exchange, until it is awaited"};
constexpr double left = 140, row = 24, top = 70, width = 1100, legend = 46;

}  // namespace

std::string profile_picture(const sim::Timeline& timeline, const std::vector<SpanKind>& shown,
                            const std::string& title) {
  const double height = top + row * static_cast<double>(timeline.tracks.size()) + 30;
  const double unit = (width - left - 20) / static_cast<double>(std::max<sim::Time>(1, timeline.end));
  const auto fill = [](SpanKind s) {
    if (s == SpanKind::wait) return std::string(R"(fill="none" stroke="#9aa3ad")");
    return fmt::format(R"(fill="{}")", draw::ink(static_cast<std::int64_t>(s)).colour);
  };
  draw::Svg svg(width, height, draw::chart_style, title);
  svg.text({12, 24}, title, R"(font-size="14" font-weight="600")");
  double at = left;
  for (const SpanKind s : {SpanKind::forward, SpanKind::backward, SpanKind::recompute, SpanKind::update, SpanKind::wait,
                           SpanKind::exchange}) {
    if (std::ranges::find(shown, s) == shown.end()) continue;
    const std::string_view word = words[static_cast<std::size_t>(s)];
    svg.rect({at, legend - 10}, {12, 12}, 2, fill(s));
    svg.text({at + 18, legend}, word, R"(font-size="12")");
    at += 40 + 7 * static_cast<double>(word.size());
  }
  for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
    const double y = top + row * static_cast<double>(t);
    svg.text({12, y + 14}, fmt::format("{} {}", timeline.tracks[t].group, timeline.tracks[t].name),
             R"(font-size="12")");
    double drawn = 0;  // the row is filled up to here; a span that would add too little to be seen is left out
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
      const sim::Span& span = timeline.spans[i];
      const double from = left + unit * static_cast<double>(span.start),
                   to = left + unit * static_cast<double>(span.end);
      if (span.track != t || to - std::max(from, drawn) < 0.4) continue;
      svg.open("", fmt::format("{}, {:.2f} ms", timeline.label(span.label),
                               static_cast<double>(span.end - span.start) / static_cast<double>(sim::ms)));
      // Exchanges of an axis may overlap in time, so they are drawn half transparent.
      svg.rect({from, y}, {to - from, row - 6}, 0,
               fill(shown[i]) +
                   (shown[i] == SpanKind::exchange ? R"( opacity=".5" stroke="#646c76" stroke-width=".5")" : ""));
      svg.close();
      if (shown[i] != SpanKind::exchange) drawn = to;
    }
  }
  const double end = static_cast<double>(timeline.end) / static_cast<double>(sim::ms);
  svg.text({left, height - 8}, "0 ms", R"(font-size="11" class="dim")");
  svg.text({width - 20, height - 8}, fmt::format("{:.1f} ms", end), R"(font-size="11" class="dim" text-anchor="end")");
  return std::move(svg).finish();
}

}  // namespace trellis::tools
