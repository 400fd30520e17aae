// Composes algorithms by level: one within the innermost dimensions, another between them, for any number of levels.
// Each level runs its own collective on a part of the ranks and of the data.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/patterns/usual_level.h"
#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// The algorithm of the innermost dimensions, and the request for the levels above.
struct Level {
  const Algorithm* algorithm = nullptr;
  std::vector<Rank> dims;  // of this level
  Request above;           // the same request over the other dims; no dims if this is the last level
  Rank inner = 1, outer = 1;
  bool last() const { return above.dims.empty(); }
};

// "torus:2" is torus over two dimensions.
std::pair<std::string, int> split_name(const std::string& level) {
  const auto colon = level.find(':');
  if (colon == std::string::npos) return {level, 1};
  const auto dims = text::number<int>(std::string_view(level).substr(colon + 1), 1);
  if (!dims) text::refuse("level '{}': expected an algorithm, or one and its dimensions as in torus:2", level);
  return {level.substr(0, colon), *dims};
}

Level lowest(const Request& r) {
  std::string name = r.levels.empty() ? usual_level(r.operation.collective, r.dims.size() == 1) : r.levels.front();
  const auto [algorithm, count] = split_name(name);
  if (algorithm == "hierarchical")
    throw std::invalid_argument("hierarchical cannot be a level of itself: give more levels");
  const auto dims = static_cast<std::size_t>(count);
  if (dims > r.dims.size() || (!r.levels.empty() && r.levels.size() == 1 && dims != r.dims.size()))
    text::refuse("the levels cover other dimensions than the {} given", r.dims.size());
  Level level{&algorithm_named(algorithm), {r.dims.begin(), r.dims.begin() + count}, r};
  level.above.dims.erase(level.above.dims.begin(), level.above.dims.begin() + count);
  if (!r.levels.empty()) level.above.levels.erase(level.above.levels.begin());
  if (level.last() && !level.above.levels.empty())
    text::refuse("level '{}' has no dimension left", level.above.levels.front());
  if (!level.last() && !r.levels.empty() && level.above.levels.empty())
    text::refuse("no level is left for the outer {} dimensions", level.above.dims.size());
  level.outer = level.last() ? 1 : level.above.ranks();
  level.inner = r.ranks() / level.outer;
  level.above.operation.root = rooted(r.operation.collective) ? r.operation.root / level.inner : 0;
  return level;
}

// The request for this level's algorithm among the ranks of one group.
Request within(const Level& level, const Request& r, Collective collective) {
  return {.operation = {.collective = collective, .root = rooted(collective) ? r.operation.root % level.inner : 0},
          .dims = level.dims,
          .channels = r.channels};
}

bool can(const Level& level, const Request& r, Collective collective) {
  return refusal(*level.algorithm, within(level, r, collective)).empty();
}

bool in_halves(const Level& level, const Request& r) {
  return can(level, r, reduce_scatter) && can(level, r, all_gather);
}

// Whether an all_reduce here can be a reduce_scatter and an all_gather, each of which cuts a block into exactly one
// piece per lane.
bool a_piece_each(const Level& level, const Request& r) {
  return in_halves(level, r) && std::ranges::all_of(std::array{reduce_scatter, all_gather}, [&](Collective half) {
           return task_of(*level.algorithm, within(level, r, half)).pieces == r.channels;
         });
}

// An all_reduce at a level is one of: a single all_reduce; its two halves around the levels above; or a reduce to one
// leader rank per group and a broadcast from it. The halves are also used if a single all_reduce would mix lanes.
std::vector<Collective> parts_of(const Level& level, const Request& r) {
  if (r.operation.collective != all_reduce) return {r.operation.collective};
  const bool lanes_meet = r.channels > 1 && !level.algorithm->lanes_are_runs && a_piece_each(level, r);
  if (level.last() && can(level, r, all_reduce) && !lanes_meet) return {all_reduce};
  if (in_halves(level, r)) return {reduce_scatter, all_gather};
  return {reduce, broadcast};
}

std::string refuses(const Request& r) {
  const Level level = lowest(r);
  for (Collective part : parts_of(level, r))
    if (const std::string why = refusal(*level.algorithm, within(level, r, part)); !why.empty())
      return fmt::format("{} cannot do {} within {} ranks: {}", level.algorithm->name, name(part), level.inner, why);
  return level.last() ? "" : refuses(level.above);
}

// Saturating multiplication: too many chunks stay too many.
std::int64_t times(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return a > most / b ? most : a * b;
}

std::int64_t common_multiple(std::int64_t a, std::int64_t b) { return times(a / std::gcd(a, b), b); }

// Chunks per segment of a block, such that every level's own cuts fit.
std::int64_t cuts(const Request& r) {
  const Level level = lowest(r);
  const std::vector<Collective> parts = parts_of(level, r);
  std::int64_t needed = 1;
  for (Collective part : parts)
    needed = common_multiple(needed, task_of(*level.algorithm, within(level, r, part)).pieces);
  if (r.operation.collective == all_reduce &&
      parts.front() == reduce_scatter) {  // its pieces are per block, and the level has `inner` blocks
    const std::int64_t above = level.last() ? 1 : cuts(level.above);
    return times(level.inner, common_multiple(needed, above));
  }
  return level.last() ? needed : common_multiple(needed, cuts(level.above));
}

std::int64_t pieces(const Request& r) { return times(cuts(r), r.segments); }

// Runs one level. `block` counts the chunks of the data or, if blocks belong to ranks, of each block.
struct Stage {
  const Request& request;
  const Level& level;
  const Builder& b;
  std::int64_t block = 1;

  // Runs the collective in every group of neighbours. `place` sets where a group's data lies.
  template <class ChunkPlace>
  void inside(Collective collective, std::int64_t sub_block, ChunkPlace place) const {
    if (level.inner == 1 && collective != all_to_all) return;  // a no-op for a single rank
    const Request inner = within(level, request, collective);
    const std::int64_t grain = sub_block / task_of(*level.algorithm, inner).pieces, scratch = b.scratch_used();
    const auto run = [&](Rank g) {
      SubMachine part{.first = g * level.inner, .count = level.inner, .scratch = scratch};
      place(g, part);
      part.data.grain = part.input.grain = part.output.grain = grain;
      Builder group = b.part(part);
      level.algorithm->build(inner, group);
    };
    if (!b.everyone()) {
      if (const Rank me = b.wanted_rank(); me >= 0) run(me / level.inner);
      return;
    }
    for (Rank g = 0; g < level.outer; ++g) run(g);
  }

  // Runs the levels above among the ranks that have the same position in their groups, for each position or for one
  // only.
  template <class ChunkPlace>
  void above(std::int64_t block_above, ChunkPlace place, std::optional<Rank> only = {}) const;
};

void build_level(const Request&, const Builder&, std::int64_t block);

template <class ChunkPlace>
void Stage::above(std::int64_t block_above, ChunkPlace place, std::optional<Rank> only) const {
  if (level.last()) return;
  const std::int64_t scratch = b.scratch_used();
  const auto run = [&](Rank i) {
    if (only && i != *only) return;
    SubMachine part{.first = i, .stride = level.inner, .count = level.outer, .scratch = scratch};
    place(i, part);
    build_level(level.above, b.part(part), block_above);
  };
  if (!b.everyone()) {
    if (const Rank me = b.wanted_rank(); me >= 0) run(me % level.inner);
    return;
  }
  for (Rank i = 0; i < level.inner; ++i) run(i);
}

constexpr auto everything = [](Rank, SubMachine&) {};

void sum_everywhere(const Stage& s) {
  const std::vector<Collective> parts = parts_of(s.level, s.request);
  if (parts.size() == 1) return s.inside(all_reduce, s.block, everything);
  if (parts.front() == reduce) {
    s.inside(reduce, s.block, everything);
    s.above(s.block, everything, Rank{0});
    return s.inside(broadcast, s.block, everything);
  }
  const std::int64_t inner = s.level.inner, share = s.block / inner,
                     lanes = a_piece_each(s.level, s.request) ? s.request.channels : 1;
  const std::int64_t run = share / lanes;
  const auto blocks = [&](Rank, SubMachine& part) {  // each lane's pieces are contiguous
    part.data.digits = {{run, 1}, {lanes, inner * run}, {inner, run}};
  };
  s.inside(reduce_scatter, share, blocks);
  s.above(share, [&](Rank i, SubMachine& part) {
    part.data.base = i * run;
    part.data.digits = {{run, 1}, {lanes, inner * run}};
  });
  s.inside(all_gather, share, blocks);
}

// Within a group, the rank in position i handles the blocks of all ranks in position i of their groups (a column). Each
// group visits a column's blocks beginning with its own, so that symmetric groups wait in the same order.
void sum_or_gather_blocks(const Stage& s) {
  const auto columns = [&](Rank g, SubMachine& part) {
    part.data.digits = {{s.block, 1}, {s.level.outer, s.level.inner * s.block, g}, {s.level.inner, s.block}};
  };
  const auto column = [&](Rank i, SubMachine& part) {
    part.data.base = i * s.block;
    part.data.digits = {{s.block, 1}, {s.level.outer, s.level.inner * s.block}};
  };
  const Collective c = s.request.operation.collective;
  if (reduces(c)) s.inside(c, s.level.outer * s.block, columns);
  s.above(s.block, column);
  if (!reduces(c)) s.inside(c, s.level.outer * s.block, columns);
}

// One leader per group takes part in the levels above: the rank in the root's position.
void by_speaker(const Stage& s) {
  const Collective c = s.request.operation.collective;
  const bool blocks = by_block(c), inwards = c == reduce || c == gather;
  const auto own_blocks = [&](Rank g, SubMachine& part) {
    if (blocks) part.data.base = g * s.level.inner * s.block;
  };
  const Rank speaker = s.request.operation.root % s.level.inner;
  if (inwards) s.inside(c, s.block, own_blocks);
  s.above(blocks ? s.level.inner * s.block : s.block, everything, speaker);
  if (!inwards) s.inside(c, s.block, own_blocks);
}

// First, every block goes to the rank of its group in the receiver's position. From there, everything that a group has
// for one receiver is sent as one piece. Each group begins with the data that it keeps.
void exchange(const Stage& s) {
  const std::int64_t group = s.level.inner * s.block, waiting = s.b.scratch_used();
  const auto straight = [](Rank, SubMachine& part) {
    part.input.region = Region::input;
    part.output.region = Region::output;
  };
  if (s.level.inner == 1 && !s.level.last()) return s.above(s.block, straight);
  if (s.level.outer == 1) return s.inside(all_to_all, s.block, straight);
  for (Rank column = 0; column < s.level.outer; ++column)
    s.inside(all_to_all, s.block, [&](Rank g, SubMachine& part) {
      const std::int64_t first = (g + column) % s.level.outer * group;
      part.input = {.region = Region::input, .base = first};
      part.output = {.region = Region::scratch, .base = waiting + first};
      part.scratch = std::max(part.scratch, waiting + s.level.outer * group);
    });
  s.above(group, [&](Rank, SubMachine& part) {
    part.input = {.region = Region::scratch, .base = waiting};
    part.output = {.region = Region::output};
    part.scratch = std::max(part.scratch, waiting + s.level.outer * group);
  });
}

void build_level(const Request& r, const Builder& b, std::int64_t block) {
  const Level level = lowest(r);
  const Stage stage{r, level, b, block};
  switch (r.operation.collective) {
    case all_reduce:
      return sum_everywhere(stage);
    case barrier:
      stage.inside(barrier, block, everything);
      return stage.above(block, everything);
    case all_to_all:
      return exchange(stage);
    case broadcast:
    case reduce:
    case gather:
    case scatter:
      return by_speaker(stage);
    default:
      return sum_or_gather_blocks(stage);
  }
}

// Pipelines segments through all levels, so that the levels work at the same time.
void build(const Request& request, Builder& b) {
  const std::int64_t block = cuts(request);
  Request one = request;
  one.segments = 1;
  for (std::int32_t segment = 0; segment < request.segments; ++segment) {
    SubMachine part{.count = request.ranks(), .scratch = b.scratch_used()};
    part.data.base = segment * block;
    if (by_block(request.operation.collective))
      part.data.digits = {{block, 1}, {request.ranks(), block * request.segments}};
    part.input = part.output = part.data;
    part.input.region = Region::input;
    part.output.region = Region::output;
    build_level(one, b.part(part), block);
  }
}

bool even(const Request& r) {
  if (r.operation.collective != all_reduce) return false;
  const Level level = lowest(r);
  const bool shares = parts_of(level, r).front() == reduce_scatter;
  return (shares && level.algorithm->mixes_blocks) || (!level.last() && even(level.above));
}

bool one_kind(const std::vector<SymmetryAxis>& axes, SymmetryAxis::Kind kind) {
  return std::ranges::all_of(axes, [&](const SymmetryAxis& axis) { return axis.kind == kind; });
}

std::vector<SymmetryAxis> axes_within(const Level& level, const Request& r) {
  std::vector<SymmetryAxis> found;
  for (Collective part : parts_of(level, r)) {
    const auto more = symmetry_of(*level.algorithm, within(level, r, part)).axes;
    if (found.empty()) found = more;
    if (found != more || rooted(part)) return {{SymmetryAxis::Kind::distinct, level.inner}};
  }
  return found;
}

// Whether a lane never mixes with another one at any level.
bool lanes_stay_apart(const Level& level, const Request& r) {
  if (r.operation.collective != all_reduce) return false;
  if (level.last() && parts_of(level, r).front() == all_reduce) return level.algorithm->lanes_are_runs;
  return a_piece_each(level, r) && (level.last() || lanes_stay_apart(lowest(level.above), level.above));
}

// Work within a group is done in parts, by lane or by column. Unless lanes stay apart, ranks begin the levels above
// with different parts, which breaks symmetry. Blocks are visited in rotated order, so rotations above stay symmetric.
std::vector<SymmetryAxis> axes(const Request& r) {
  const Level level = lowest(r);
  std::vector<SymmetryAxis> found = axes_within(level, r);
  if (level.last()) return found;
  std::vector<SymmetryAxis> outer = axes(level.above);
  const bool whole = !by_block(r.operation.collective) || rooted(r.operation.collective);
  const bool cut = !lanes_stay_apart(level, r) && std::ranges::any_of(parts_of(level, r), [&](Collective part) {
    return task_of(*level.algorithm, within(level, r, part)).pieces > 1;
  });
  const bool round =
      one_kind(found, SymmetryAxis::Kind::rotate) && outer.size() == 1 && one_kind(outer, SymmetryAxis::Kind::rotate);
  if (!whole && !round) found = {{SymmetryAxis::Kind::distinct, level.inner}};
  for (SymmetryAxis& axis : outer) {
    if (whole ? cut : !round) axis.kind = SymmetryAxis::Kind::distinct;
    found.push_back(axis);
  }
  return found;
}

// An all_to_all sends all its blocks for a group in one message. Other collectives with several levels send a block at
// a time, or promise rotations alone, which hold wherever blocks lie.
bool joins_blocks(const Request& r) {
  const Level level = lowest(r);
  if (level.last()) return schedule::joins_blocks(*level.algorithm, within(level, r, r.operation.collective));
  return r.operation.collective == all_to_all;
}

Symmetry symmetry(const Request& r) {
  // In an all_to_all, all ranks handle its parts, and the data for a third level, in the same order, instead of each
  // rank beginning with its own: so ranks are not symmetric.
  const bool exchanged = r.operation.collective == all_to_all && (r.channels * r.segments > 1 || axes(r).size() > 2);
  const bool apart = r.segments > 1 && by_block(r.operation.collective) && joins_blocks(r);  // blocks lie apart
  return exchanged || apart ? Symmetry{{{SymmetryAxis::Kind::distinct, r.ranks()}}} : Symmetry{axes(r)};
}

const RegisteredAlgorithm registered{{
    .name = "hierarchical",
    .summary = "any algorithm within a host, any other between hosts, over any number of levels",
    .constraint = "what its levels can serve",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all, all_gather_v,
               reduce_scatter_v, barrier},
    .refuses = refuses,
    .pieces = pieces,
    .build = build,
    .has_levels = true,
    .even = even,
    .symmetry = symmetry,
    .joins_blocks = joins_blocks,
    .usual_shape = UsualShape::machine,
}};

}  // namespace
}  // namespace trellis::schedule
