#include "tools/schedule/draw/diagram_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

namespace trellis::tools::draw {
namespace {

using schedule::Rank;

constexpr double lane_gap = 22, group_gap = 22, pad = 7, spacing = 2, local_pitch = 14;
constexpr double most_labelled_across = 1700, widest_panel = 1250;
constexpr std::array<double, 3> fonts{9.5, 8, 7};
// A picture of few rounds that would be longer across than comfortable_across has its labels in two columns, with a
// passage between them for the lines of the other column.
constexpr double comfortable_across = 900, passage = 5;
constexpr std::int32_t few_rounds = 3;

// Moves that share a spot: by rank and round, indexes of `moves`.
using Stacks = std::map<std::pair<Rank, std::int32_t>, std::vector<std::size_t>>;

struct Crowd {
  Stacks leaving, arriving, locals;
  std::vector<std::size_t> deepest;  // by rank: the most moves in one of its spots
};

Crowd crowd(const Scene& scene) {
  Crowd found{.leaving = {}, .arriving = {}, .locals = {}, .deepest = std::vector<std::size_t>(scene.ranks, 1)};
  for (std::size_t i = 0; i < scene.moves.size(); ++i) {
    const DrawnMove& m = scene.moves[i];
    if (!m.shares) found.leaving[{m.from, m.round}].push_back(i);
    found.arriving[{m.to, m.round}].push_back(i);
  }
  for (std::size_t i = 0; i < scene.locals.size(); ++i)
    found.locals[{scene.locals[i].rank, scene.locals[i].round}].push_back(i);
  // Sorts moves that leave or arrive together by the lanes at their other ends, so that their lines do not cross.
  for (auto& [spot, stack] : found.leaving)
    std::ranges::sort(stack, {}, [&](std::size_t i) {
      const DrawnMove& m = scene.moves[i];
      return std::tuple(m.to, m.channel, m.tag);
    });
  for (auto& [spot, stack] : found.arriving)
    std::ranges::sort(stack, {}, [&](std::size_t i) {
      const DrawnMove& m = scene.moves[i];
      return std::tuple(m.from, m.channel, m.tag);
    });
  for (const Stacks* stacks : {&found.leaving, &found.arriving})
    for (const auto& [spot, stack] : *stacks)
      found.deepest[spot.first] = std::max(found.deepest[spot.first], stack.size());
  return found;
}

// Places the lanes: the middle of each, and the end of the last one.
void place_lanes(DiagramLayout& l, const Scene& scene, const Crowd& crowd) {
  double at = 0;
  l.lane.clear();
  for (Rank r = 0; r < scene.ranks; ++r) {
    if (r > 0) at += lane_gap + (scene.group > 0 && r % scene.group == 0 ? group_gap : 0);
    const double width = std::max(l.down ? 24.0 : 18.0,
                                  (static_cast<double>(crowd.deepest[r]) - 1) * l.pitch + l.label_across + spacing);
    l.lane.push_back(at + width / 2);
    at += width;
  }
  l.across = at;
}

double across_of(const DiagramLayout& l, Rank rank, std::size_t place, std::size_t of, double pitch) {
  return l.lane[rank] + (static_cast<double>(place) - (static_cast<double>(of) - 1) / 2) * pitch;
}

// Local steps of one moment are drawn in rows on their lane. Returns the length of the longest row.
double place_locals(DiagramLayout& l, const Crowd& crowd, std::int32_t round, double from) {
  std::size_t longest = 0;
  for (const auto& [spot, stack] : crowd.locals) {
    if (spot.second != round) continue;
    const double width = static_cast<double>(crowd.deepest[spot.first]) * l.pitch;
    const std::size_t rows = std::clamp(static_cast<std::size_t>(width / local_pitch), std::size_t{1}, stack.size());
    for (std::size_t i = 0; i < stack.size(); ++i) {
      DrawnLocalStep& local = l.locals[stack[i]];
      local.along = from + local_pitch * (static_cast<double>(i / rows) + 0.5);
      local.across = across_of(l, local.rank, i % rows, rows, local_pitch);
    }
    longest = std::max(longest, (stack.size() + rows - 1) / rows);
  }
  return longest == 0 ? 0 : static_cast<double>(longest) * local_pitch + 3;
}

double farthest(const DiagramLayout& l, std::int32_t round) {
  double most = 0;
  for (const DrawnMove& m : l.moves)
    if (m.round == round) most = std::max(most, std::abs(l.lane[m.from] - l.lane[m.to]));
  return most;
}

// The distance from labels to marks: steep lines are hard to follow, long ones need much space.
double line_length(const DiagramLayout& l, std::int32_t round, std::size_t rounds) {
  const double far = farthest(l, round);
  if (l.columns > 1) return std::clamp(far * 0.7, 130.0, 700.0 / static_cast<double>(rounds));
  return l.labelled ? std::clamp(far * 0.11, 34.0, 130.0) : std::max(far * 0.3, 34.0);
}

// Places the moves of this round and the local steps before it. Returns where the round ends.
double place_round(DiagramLayout& l, const Crowd& all, std::int32_t round, double begin, std::size_t rounds) {
  double at = begin + pad;
  at += place_locals(l, all, round - 1, at);
  const double leaves = at + l.label_along / 2;
  const double column = l.label_along + passage;
  const double turns = leaves + l.label_along / 2 + (l.columns - 1) * column;
  at = turns + line_length(l, round, rounds);
  const double arrives = at + l.mark_size / 2;
  at += l.mark_size + pad;
  const auto each = [&](const Stacks& stacks, auto place) {
    for (const auto& [spot, stack] : stacks)
      for (std::size_t i = 0; spot.second == round && i < stack.size(); ++i)
        place(l.moves[stack[i]], i, across_of(l, spot.first, i, stack.size(), l.pitch));
  };
  each(all.leaving, [&](DrawnMove& m, std::size_t place, double across) {
    m.leaves_along = leaves + column * static_cast<double>(place % static_cast<std::size_t>(l.columns));
    m.leaves_across = across, m.turns_along = turns;
  });
  each(all.arriving,
       [&](DrawnMove& m, std::size_t, double across) { m.arrives_along = arrives, m.arrives_across = across; });
  for (std::size_t i = 1; i < l.moves.size(); ++i) {
    DrawnMove& m = l.moves[i];
    if (!m.shares || m.round != round) continue;
    const DrawnMove& first = l.moves[i - 1];
    m.leaves_along = first.leaves_along, m.leaves_across = first.leaves_across, m.turns_along = first.turns_along;
  }
  l.rounds.push_back({begin, at});
  return at;
}

// Cuts a picture that is too wide between rounds into panels of about the same width, one below the other.
void cut_panels(DiagramLayout& l, double end) {
  const double share = l.down ? end + 1 : (end + 1) / std::ceil((end + 1) / widest_panel);
  double panel = 0;
  l.panels.push_back({0, end});
  for (const Band& round : l.rounds) {
    const double wanted = std::floor((round.begin + round.end) / 2 / share);
    if (wanted <= panel) continue;
    panel = wanted;
    l.panels.back().end = round.begin;
    l.panels.push_back({round.begin, end});
  }
}

// The size of labels in this font, or of dots. In two columns, a line passes between two labels of the other column.
void size_labels(DiagramLayout& l, const Scene& scene, double font, std::int32_t columns) {
  l.font = font;
  l.columns = columns;
  l.label_along = l.label_across = l.mark_size = dot;
  const double between = l.labelled ? spacing : 1;
  if (l.labelled) {
    double widest = 20, high = label_height - (fonts.front() - font) * 1.4;
    for (const DrawnMove& m : scene.moves) widest = std::max(widest, text_width(m.label, font) + font * 0.84);
    l.label_along = l.down ? high : widest;
    l.label_across = l.down ? widest : high;
    l.mark_size = columns > 1 ? 9 : 11;
  }
  l.pitch = columns > 1 ? (l.label_across + (l.labelled ? passage : 2.0)) / columns : l.label_across + between;
}

// Chooses the largest labels with which the picture has an acceptable size; else none.
void fit(DiagramLayout& l, const Scene& scene, const Crowd& crowd) {
  const bool fold = scene.last - scene.first < few_rounds && std::ranges::max(crowd.deepest) > 3;
  for (const bool labelled : {true, false}) {
    l.labelled = labelled;
    for (const double font : fonts) {
      size_labels(l, scene, font, 1);
      place_lanes(l, scene, crowd);
      if (l.across <= (fold ? comfortable_across : most_labelled_across)) return;
      if (!fold) continue;
      size_labels(l, scene, font, 2);
      place_lanes(l, scene, crowd);
      if (l.across <= most_labelled_across) return;
    }
  }
}

}  // namespace

double text_width(std::string_view text, double font_size) {
  const auto letters =
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return static_cast<double>(letters) * font_size * 0.62;
}

DiagramLayout arrange(const Scene& scene, bool down) {
  const Crowd all = crowd(scene);
  DiagramLayout l{.down = down, .moves = scene.moves, .locals = scene.locals};
  fit(l, scene, all);
  const auto rounds = static_cast<std::size_t>(std::max(scene.last - scene.first + 1, 1));
  double at = 0;
  for (std::int32_t round = scene.first; round <= scene.last; ++round) at = place_round(l, all, round, at, rounds);
  const double end = at + pad;
  const double locals = place_locals(l, all, scene.last, end);
  if (locals > 0 || l.rounds.empty()) at = end + locals;
  cut_panels(l, at);
  return l;
}

}  // namespace trellis::tools::draw
