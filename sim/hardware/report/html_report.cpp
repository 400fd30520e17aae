#include "sim/hardware/report/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/hardware/report/html_parts.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "sim/hardware/timeline/text_buffer.h"

namespace trellis::sim {
namespace {

// The note beside totals that says over which simulated ranks they are summed; empty if over all ranks.
std::string of_whom(const ReportOptions& options) {
  return options.scope.empty() ? "" : fmt::format(" <small>of {}</small>", escaped_html(options.scope));
}

void put_heading(Text& text, const Summary& s, const ReportOptions& options) {
  put(text, "<header><h1>{}</h1>\n<dl>", escaped_html(options.title));
  const std::string whose = of_whom(options);
  const auto fact = [&](std::string_view what, const std::string& value) {
    put(text, "<div><dt>{}</dt><dd>{}{}</dd></div>", what, value, what == "time" || what == "MFU" ? "" : whose);
  };
  const double seconds = in_seconds(s.end);
  fact("time", time_words(s.end));
  fact("spans", fmt::format("{}", s.spans));
  if (s.bytes > 0) fact("moved", bytes_words(s.bytes));
  if (s.flops > 0) fact("computed", flops_words(s.flops));
  if (s.flops > 0 && seconds > 0) fact("rate", flops_words(s.flops / seconds) + "/s");
  if (s.flops > 0 && seconds > 0 && s.peak_flops > 0) fact("MFU", percent_words(s.flops / seconds / s.peak_flops));
  put(text, "</dl></header>\n");
}

void put_merged(Text& text, const MergedSpans& blocks) {
  if (blocks.merged == 0) return;
  const auto many = std::ranges::count_if(blocks.blocks, [](const MergedSpan& b) { return b.count > 1; });
  put(text,
      "<p id='merged'>{} of {} spans, each shorter than {}, are drawn merged with their neighbours as {} blocks; "
      "the tables below count every span.</p>\n",
      blocks.merged, blocks.of.size(), time_words(blocks.shorter), many);
}

void put_path(Text& text, const Timeline& timeline, const Summary& s) {
  constexpr std::size_t most = 40;
  put(text, "<section><h2>Critical path</h2><table id='path'>\n");
  for (std::size_t p = 0; p < std::min(most, s.parts.size()); ++p) {
    const CriticalPathTotal& part = s.parts[p];
    put(text,
        "<tr><td class='n'>{0}</td><td class='bar'><i class='{1}' style='width:{0}'></i></td>"
        "<td class='n'>{2}</td><td>{3}</td></tr>\n",
        share_words(part.time, s.end),
        part.waiting   ? "stalled"
        : part.unknown ? "idle"
                       : "busy",
        time_words(part.time), escaped_html(words(timeline, part)));
  }
  put(text, "</table>\n");
  if (s.parts.size() > most) put(text, "<p>and {} smaller parts</p>\n", s.parts.size() - most);
  put(text, "</section>\n");
}

std::string reasons(const TrackUse& use) {
  std::string text;
  for (std::size_t w = 0; w < wait_count; ++w)
    if (use.stalled_by[w] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name(static_cast<WaitReason>(w)),
                          time_words(use.stalled_by[w]));
  return text;
}

void put_tracks(Text& text, const Timeline& timeline, const Summary& s, const ReportOptions& options) {
  const std::size_t most = options.most_tracks;
  std::vector<TrackUse> shown = s.tracks;
  if (shown.size() > most) {
    std::ranges::stable_sort(shown, std::greater{}, &TrackUse::busy);
    shown.resize(most);
    std::ranges::sort(shown, {}, &TrackUse::track);
  }
  put(text,
      "<section><h2>Tracks{}</h2><table id='tracks'><tr><th>group</th><th>track</th><th>spans</th><th>busy</th>"
      "<th>stalled</th><th>idle</th><th></th><th>bytes</th><th>flops</th><th>stalled by</th></tr>\n",
      of_whom(options));
  for (const TrackUse& use : shown) {
    const Track& track = timeline.tracks[use.track];
    const std::string busy = share_words(use.busy, s.end), stalled = share_words(use.stalled, s.end);
    put(text,
        "<tr><td>{}</td><td>{}</td><td class='n'>{}</td><td class='n'>{}</td><td class='n'>{}</td><td "
        "class='n'>{}</td>",
        escaped_html(track.group), escaped_html(track.name), use.spans, busy, stalled, share_words(use.idle, s.end));
    put(text, "<td class='bar'><i class='busy' style='width:{}'></i><i class='stalled' style='width:{}'></i></td>",
        busy, stalled);
    put(text, "<td class='n'>{}</td><td class='n'>{}</td><td>{}</td></tr>\n",
        use.bytes > 0 ? bytes_words(use.bytes) : "", use.flops > 0 ? flops_words(use.flops) : "", reasons(use));
  }
  put(text, "</table>\n");
  if (s.tracks.size() > most) put(text, "<p>and {} less busy tracks</p>\n", s.tracks.size() - most);
  put(text, "</section>\n");
}

void put_origin(Text& text, const ReportOptions& options) {
  if (options.made_by.empty()) return;
  put(text, "<section id='made_by'><h2>What made this page</h2><table>\n");
  for (const auto& [name, value] : options.made_by)
    put(text, "<tr><td>{}</td><td>{}</td></tr>\n", escaped_html(name), escaped_html(value));
  put(text, "</table></section>\n");
}

}  // namespace

std::string escaped_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string html_report(const Timeline& timeline, const ReportOptions& options) {
  const TimelineLayout rows = rows_of(timeline);
  const Summary summary = summarize(timeline, options.peaks);
  const MergedSpans blocks = blocks_of(timeline, rows, options.most_blocks);
  Text text;
  put(text,
      "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
      "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; script-src 'unsafe-inline'; "
      "style-src 'unsafe-inline'\">\n<meta name='viewport' content='width=device-width'>"
      "<meta name='color-scheme' content='light dark'><title>{}</title>\n<style>{}</style></head>\n<body>\n",
      escaped_html(options.title), report_style);
  put_heading(text, summary, options);
  put(text, "{}{}", options.introduction, report_body);
  put_merged(text, blocks);
  if (options.path) put_path(text, timeline, summary);
  put_tracks(text, timeline, summary, options);
  const std::string roofline = roofline_svg(summary);
  if (!roofline.empty()) put(text, "<section><h2>Roofline</h2>\n{}</section>\n", roofline);
  put_origin(text, options);
  put(text, "<script type='application/json' id='data'>{}</script>\n", report_data(timeline, rows, blocks, summary));
  put(text, "<script>{}{}</script>\n</body></html>\n", report_script, report_input);
  return fmt::to_string(text);
}

}  // namespace trellis::sim
