#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/hardware/timeline/summary.h"

namespace trellis::sim {
namespace {

// Spans by track and end, to find what ran on the track before a span.
class Predecessors {
 public:
  explicit Predecessors(const Timeline& timeline) : timeline_(timeline), order_(timeline.spans.size()) {
    std::iota(order_.begin(), order_.end(), 0U);
    std::ranges::sort(order_, {}, [&](std::uint32_t s) { return key(timeline_.spans[s].track, end(s), s); });
  }

  // The span of this one's track that ended last before it began; -1: none.
  std::int64_t before(std::int64_t index) const {
    const Span& s = timeline_.spans[index];
    const auto by_end = [&](std::uint32_t other) { return std::tuple(timeline_.spans[other].track, end(other)); };
    auto at = std::ranges::upper_bound(order_, std::tuple(s.track, s.start), {}, by_end);
    while (at != order_.begin() && timeline_.spans[*--at].track == s.track)
      if (precedes(timeline_, *at, index)) return *at;
    return -1;
  }

  // A strict order of all spans, so a walk backwards must end.
  static bool precedes(const Timeline& timeline, std::int64_t a, std::int64_t b) {
    return std::tuple(timeline.spans[a].start, a) < std::tuple(timeline.spans[b].start, b);
  }

 private:
  Time end(std::uint32_t s) const { return timeline_.spans[s].end; }
  static std::tuple<std::uint32_t, Time, std::uint32_t> key(std::uint32_t track, Time end, std::uint32_t s) {
    return {track, end, s};
  }

  const Timeline& timeline_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::vector<CriticalPathPiece> critical_path(const Timeline& timeline) {
  std::vector<CriticalPathPiece> path;
  const std::vector<Span>& spans = timeline.spans;
  if (spans.empty()) return path;
  const Predecessors predecessors(timeline);
  std::int64_t at = std::ranges::max_element(spans, {}, &Span::end) - spans.begin();
  Time until = timeline.end;  // the path already covers the time after this
  const auto put = [&](std::int64_t span, Time start, bool waiting) {
    if (start >= until) return;
    path.push_back({span, start, until, waiting});
    until = start;
  };
  put(-1, spans[at].end, false);
  while (at >= 0) {
    put(at, spans[at].start, false);
    std::int64_t cause = spans[at].cause;
    if (cause >= 0 && !Predecessors::precedes(timeline, cause, at)) cause = -1;
    if (cause < 0) cause = predecessors.before(at);
    if (cause >= 0) put(at, spans[cause].end, true);
    at = cause;
  }
  put(-1, 0, false);
  std::ranges::reverse(path);
  return path;
}

}  // namespace trellis::sim
