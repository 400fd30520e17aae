#include "tools/draw/layout.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

namespace trellis::tools::draw {
namespace {

using schedule::Rank;

constexpr double lane_gap = 22, group_gap = 22, pad = 7, spacing = 2, local_pitch = 14;
constexpr double most_labelled_across = 1700, widest_panel = 1250;

// What shares a spot: by rank and round, the places of `moves`.
using Stacks = std::map<std::pair<Rank, std::int32_t>, std::vector<std::size_t>>;

struct Crowd {
  Stacks leaving, arriving, locals;
  std::vector<std::size_t> deepest;  // by rank
};

Crowd crowd(const Scene& scene) {
  Crowd found{.leaving = {}, .arriving = {}, .locals = {}, .deepest = std::vector<std::size_t>(scene.ranks, 1)};
  for (std::size_t i = 0; i < scene.moves.size(); ++i) {
    const Move& m = scene.moves[i];
    found.leaving[{m.from, m.round}].push_back(i);
    found.arriving[{m.to, m.round}].push_back(i);
  }
  for (std::size_t i = 0; i < scene.locals.size(); ++i)
    found.locals[{scene.locals[i].rank, scene.locals[i].round}].push_back(i);
  // In the order of the lanes at the other end, so that what leaves or arrives together does not cross.
  for (auto& [spot, stack] : found.leaving)
    std::ranges::sort(stack, {}, [&](std::size_t i) {
      const Move& m = scene.moves[i];
      return std::tuple(m.to, m.channel, m.tag);
    });
  for (auto& [spot, stack] : found.arriving)
    std::ranges::sort(stack, {}, [&](std::size_t i) {
      const Move& m = scene.moves[i];
      return std::tuple(m.from, m.channel, m.tag);
    });
  for (const Stacks* stacks : {&found.leaving, &found.arriving})
    for (const auto& [spot, stack] : *stacks)
      found.deepest[spot.first] = std::max(found.deepest[spot.first], stack.size());
  return found;
}

// The lanes' middles; returns where the last one ends.
double place_lanes(const Scene& scene, const Crowd& crowd, double pitch, double least, std::vector<double>& lane) {
  double at = 0;
  lane.clear();
  for (Rank r = 0; r < scene.ranks; ++r) {
    if (r > 0) at += lane_gap + (scene.group > 0 && r % scene.group == 0 ? group_gap : 0);
    const double width = std::max(least, static_cast<double>(crowd.deepest[r]) * pitch);
    lane.push_back(at + width / 2);
    at += width;
  }
  return at;
}

double across_of(const Layout& l, Rank rank, std::size_t place, std::size_t of, double pitch) {
  return l.lane[rank] + (static_cast<double>(place) - (static_cast<double>(of) - 1) / 2) * pitch;
}

// Local steps of one moment stand in rows beside each other on their lane; returns how long the longest row is.
double place_locals(Layout& l, const Crowd& crowd, std::int32_t round, double from, double pitch) {
  std::size_t longest = 0;
  for (const auto& [spot, stack] : crowd.locals) {
    if (spot.second != round) continue;
    const double width = static_cast<double>(crowd.deepest[spot.first]) * pitch;
    const std::size_t rows = std::clamp(static_cast<std::size_t>(width / local_pitch), std::size_t{1}, stack.size());
    for (std::size_t i = 0; i < stack.size(); ++i) {
      Local& local = l.locals[stack[i]];
      local.along = from + local_pitch * (static_cast<double>(i / rows) + 0.5);
      local.across = across_of(l, local.rank, i % rows, rows, local_pitch);
    }
    longest = std::max(longest, (stack.size() + rows - 1) / rows);
  }
  return longest == 0 ? 0 : static_cast<double>(longest) * local_pitch + 3;
}

double farthest(const Layout& l, std::int32_t round) {
  double most = 0;
  for (const Move& m : l.moves)
    if (m.round == round) most = std::max(most, std::abs(l.lane[m.from] - l.lane[m.to]));
  return most;
}

// Places what moves in this round and the local steps before it; returns where the round ends.
double place_round(Layout& l, const Crowd& all, std::int32_t round, double begin, double pitch) {
  double at = begin + pad;
  at += place_locals(l, all, round - 1, at, pitch);
  const double leaves = at + l.label_along / 2;
  at += l.label_along +
        (l.labelled ? std::clamp(farthest(l, round) * 0.11, 34.0, 130.0) : std::max(farthest(l, round) * 0.3, 34.0));
  const double arrives = at + l.mark_size / 2;
  at += l.mark_size + pad;
  const auto each = [&](const Stacks& stacks, auto place) {
    for (const auto& [spot, stack] : stacks)
      for (std::size_t i = 0; spot.second == round && i < stack.size(); ++i)
        place(l.moves[stack[i]], across_of(l, spot.first, i, stack.size(), pitch));
  };
  each(all.leaving, [&](Move& m, double across) { m.leaves_along = leaves, m.leaves_across = across; });
  each(all.arriving, [&](Move& m, double across) { m.arrives_along = arrives, m.arrives_across = across; });
  l.rounds.push_back({begin, at});
  return at;
}

// A picture that is too wide goes on below, after a round, in panels of about the same width.
void cut_panels(Layout& l, double end) {
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

}  // namespace

double text_width(std::string_view text, double font_size) {
  const auto letters =
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return static_cast<double>(letters) * font_size * 0.62;
}

Layout arrange(const Scene& scene, bool down) {
  const Crowd all = crowd(scene);
  Layout l{.down = down, .moves = scene.moves, .locals = scene.locals};
  double widest = 20;
  for (const Move& m : scene.moves) widest = std::max(widest, text_width(m.label, 9.5) + 8);
  l.label_along = down ? label_height : widest;
  l.label_across = down ? widest : label_height;
  double pitch = l.label_across + spacing;
  l.across = place_lanes(scene, all, pitch, down ? 24 : 18, l.lane);
  if (l.across > most_labelled_across) {
    l.labelled = false;
    l.label_along = l.label_across = l.mark_size = dot;
    pitch = dot + 1;
    l.across = place_lanes(scene, all, pitch, down ? 24 : 18, l.lane);
  }
  double at = 0;
  for (std::int32_t round = scene.first; round <= scene.last; ++round) at = place_round(l, all, round, at, pitch);
  const double end = at + pad;
  const double locals = place_locals(l, all, scene.last, end, pitch);
  if (locals > 0 || l.rounds.empty()) at = end + locals;
  cut_panels(l, at);
  return l;
}

}  // namespace trellis::tools::draw
