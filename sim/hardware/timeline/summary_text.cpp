#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/hardware/timeline/format_quantities.h"
#include "sim/hardware/timeline/summary.h"
#include "sim/hardware/timeline/text_buffer.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

std::string track_name(const Timeline& timeline, std::uint32_t track) {
  const Track& t = timeline.tracks[track];
  return t.group.empty() ? t.name : fmt::format("{}, {}", t.group, t.name);
}

// "semaphore 30.0%, port 1.2%": the reasons for waiting, the longest first.
std::string reasons(const TrackUse& use, Time end) {
  std::vector<std::size_t> order(wait_count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t w) { return use.stalled_by[w]; });
  std::string text;
  for (const std::size_t w : order)
    if (use.stalled_by[w] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name(static_cast<WaitReason>(w)),
                          share_words(use.stalled_by[w], end));
  return text;
}

void put_tracks(Text& text, const Timeline& timeline, const Summary& s, std::size_t most) {
  std::vector<const TrackUse*> shown;
  for (const TrackUse& use : s.tracks) shown.push_back(&use);
  const auto more = [](const TrackUse* a, const TrackUse* b) { return a->busy > b->busy; };
  const std::size_t left = shown.size() > most ? shown.size() - most : 0;
  if (left > 0) {  // show the busiest tracks, in their own order
    std::ranges::stable_sort(shown, more);
    shown.resize(most);
    std::ranges::sort(shown, {}, &TrackUse::track);
  }
  std::size_t wide = 5;
  for (const TrackUse* use : shown) wide = std::max(wide, track_name(timeline, use->track).size());
  put(text, "\n{:<{}} {:>8} {:>7} {:>7} {:>7} {:>10} {:>12}  {}\n", "track", wide, "spans", "busy", "stalled", "idle",
      "bytes", "while busy", "stalled by");
  for (const TrackUse* use : shown) {
    const double seconds = in_seconds(use->busy);
    put(text, "{:<{}} {:>8} {:>7} {:>7} {:>7} {:>10} {:>12}", track_name(timeline, use->track), wide, use->spans,
        share_words(use->busy, s.end), share_words(use->stalled, s.end), share_words(use->idle, s.end),
        use->bytes > 0 ? bytes_words(use->bytes) : "-",
        use->bytes > 0 && seconds > 0   ? rate_words(use->bytes / seconds)
        : use->flops > 0 && seconds > 0 ? flops_words(use->flops / seconds) + "/s"
                                        : "-");
    const std::string why = reasons(*use, s.end);
    put(text, "{}{}\n", why.empty() ? "" : "  ", why);
  }
  if (left > 0) put(text, "and {} less busy tracks\n", left);
}

void put_path(Text& text, const Timeline& timeline, const Summary& s) {
  constexpr std::size_t most = 12;
  put(text, "\ncritical path, {} pieces:\n", s.path.size());
  Time rest = 0;
  for (std::size_t p = 0; p < s.parts.size(); ++p) {
    if (p >= most)
      rest += s.parts[p].time;
    else
      put(text, "{:>6} of the time ({}): {}\n", share_words(s.parts[p].time, s.end), time_words(s.parts[p].time),
          words(timeline, s.parts[p]));
  }
  if (rest > 0)
    put(text, "{:>6} of the time ({}): the other {}\n", share_words(rest, s.end), time_words(rest),
        s.parts.size() - most);
}

void put_roofline(Text& text, const Summary& s) {
  if (s.roofline.empty()) return;
  put(text, "\nroofline:\n");
  for (const RooflinePoint& p : s.roofline) {
    put(text, "{} {}, at {} of {} ({})\n", p.roof.name, bytes_words(p.bytes), rate_words(p.bandwidth),
        rate_words(p.roof.bytes_per_second), percent_words(p.bandwidth / p.roof.bytes_per_second));
    if (p.intensity > 0)
      put(text, "  {:.4g} flops a byte, bound by {}: {}/s of {}/s ({})\n", p.intensity,
          p.memory_bound ? p.roof.name : "the arithmetic", flops_words(p.attained), flops_words(p.attainable),
          percent_words(p.attainable > 0 ? p.attained / p.attainable : 0));
  }
}

std::string_view waiting_words(WaitReason wait) {
  return text::word_of(wait, {"before it begins", "waits for its turn", "waits for a semaphore", "waits for a port",
                              "waits for data", "waits for its peer", "waits for a link"});
}

}  // namespace

std::string words(const Timeline& timeline, const CriticalPathTotal& part) {
  if (part.unknown) return "nothing that was recorded";
  const std::string others = part.labels == 2  ? " and one other"
                             : part.labels > 2 ? fmt::format(" and {} others", part.labels - 1)
                                               : "";
  const std::string what = fmt::format("{}{}", timeline.label(part.label), others);
  if (part.waiting) return fmt::format("{} {} ({})", track_name(timeline, part.track), waiting_words(part.wait), what);
  return fmt::format("{}: {}", track_name(timeline, part.track), what);
}

std::string summary_text(const Timeline& timeline, const Summary& s, std::size_t most_tracks) {
  Text text;
  put(text, "time {} ({} ps), {} spans on {} tracks\n", time_words(s.end), s.end, s.spans, s.tracks.size());
  const double seconds = in_seconds(s.end);
  if (s.bytes > 0 && seconds > 0)
    put(text, "moved {}, {} on average\n", bytes_words(s.bytes), rate_words(s.bytes / seconds));
  if (s.flops > 0 && seconds > 0) {
    put(text, "computed {}, {}/s on average", flops_words(s.flops), flops_words(s.flops / seconds));
    if (s.peak_flops > 0)
      put(text, ": MFU {} of {}/s", percent_words(s.flops / seconds / s.peak_flops), flops_words(s.peak_flops));
    put(text, "\n");
  }
  put_tracks(text, timeline, s, most_tracks);
  put_path(text, timeline, s);
  put_roofline(text, s);
  return fmt::to_string(text);
}

}  // namespace trellis::sim
