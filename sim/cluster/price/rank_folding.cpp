#include "sim/cluster/price/rank_folding.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <unordered_map>
#include <unordered_set>

namespace trellis::sim {
namespace {

using Axis = schedule::SymmetryAxis;
using schedule::Symmetry;

// How the schedule or the machine allows a row of ranks to be renamed.
struct Row {
  bool rotate = false, flip = false;
  bool at_will = false;  // in any order
  Rank size = 1;
};

// In a row of two ranks, a rotation and a flip are the same.
Row sized(Row row, Rank size) {
  row.size = size;
  if (size <= 2) row.rotate = row.flip = row.rotate || row.flip;
  return row;
}

Row row_of(const Axis& axis) {
  return sized({.rotate = axis.kind == Axis::Kind::rotate, .flip = axis.kind == Axis::Kind::flip}, axis.size);
}

Row row_of(const RowSymmetry& alike) {
  const bool any = alike.kind == RowSymmetry::Kind::any;
  return sized({.rotate = any || alike.kind == RowSymmetry::Kind::rotate, .flip = any, .at_will = any}, alike.size);
}

// Splits the innermost `size` ranks off a row and returns them. What is left is a row of such parts, which may be
// renamed as the whole could be. Within a smaller part, ranks may be rotated only if they may be renamed at will.
Row take(Row& row, Rank size) {
  Row part = row;
  if (row.size != size) part.rotate = row.at_will;
  row = sized(row, row.size / size);
  return sized(part, size);
}

Symmetry distinct(Rank ranks) { return {{{Axis::Kind::distinct, ranks}}}; }

// Cuts both lists of rows, innermost first, wherever a row of either ends. Calls `found` for each piece with what both
// allow of it. Returns false if the rows cannot be cut so.
template <class Found>
bool share(std::vector<Row> ours, const std::vector<Row>& others, const Found& found) {
  std::size_t i = 0, j = 0;
  Row theirs;
  for (;;) {
    while (i < ours.size() && ours[i].size == 1) ++i;
    while (theirs.size == 1 && j < others.size()) theirs = others[j++];
    if (i == ours.size() || theirs.size == 1) break;
    const Rank size = std::min(ours[i].size, theirs.size);
    if (ours[i].size % size != 0 || theirs.size % size != 0) return false;
    const Row a = take(ours[i], size), b = take(theirs, size);
    found(
        Row{.rotate = a.rotate && b.rotate, .flip = a.flip && b.flip, .at_will = a.at_will && b.at_will, .size = size});
  }
  return i == ours.size() && theirs.size == 1 && j == others.size();
}

std::vector<Row> rows_of(const std::vector<RowSymmetry>& machine) {
  std::vector<Row> rows;
  for (const RowSymmetry& alike : machine) rows.push_back(row_of(alike));
  return rows;
}

Axis axis_of(const Row& row) {
  return {row.rotate ? Axis::Kind::rotate : row.flip ? Axis::Kind::flip : Axis::Kind::distinct, row.size};
}

}  // namespace

Symmetry shared_symmetry(const Symmetry& schedule, const std::vector<RowSymmetry>& machine) {
  std::vector<Row> rows;
  for (const Axis& axis : schedule.axes) rows.push_back(row_of(axis));
  Symmetry shared;
  const bool all = share(rows, rows_of(machine), [&](const Row& row) { shared.axes.push_back(axis_of(row)); });
  return all && shared.ranks() == schedule.ranks() ? shared : distinct(schedule.ranks());
}

namespace {

// A row of a group's ranks, or of like groups beside each other, as it lies in the machine.
struct PlacedRow {
  Row row;
  Rank stride = 1;
  Rank index = 0;  // stride of the ranks' numbers in the group; 0: it is a row of groups
};

// Finds the renamings of the machine's ranks that keep a set of groups and the schedule that each of them runs.
class GroupFolding {
 public:
  GroupFolding(const Symmetry& schedule, const Machine& machine, const std::vector<std::vector<Rank>>& groups)
      : schedule_(schedule), machine_(machine), groups_(groups) {
    for (std::size_t g = 0; g < groups.size(); ++g) first_.emplace(groups[g][0], g);
  }

  // Cuts `rows` where the groups' rows end, and keeps of each piece the renamings that both allow. False: it can't be
  // cut.
  bool cut(std::vector<Row>& rows) {
    if (!apart() || !place_members() || !place_groups()) return false;
    std::vector<Row> ours, found;
    for (const PlacedRow& placed : placed_) ours.push_back(placed.row);
    if (!share(ours, rows, [&](const Row& row) { found.push_back(row); })) return false;
    rows = std::move(found);
    return true;
  }

  // Whether renaming along the axis maps each group to another one, rank by rank, or to itself as its schedule allows.
  bool keeps(const Axis& axis, Rank stride) const {
    const auto of = std::ranges::find_if(
        placed_, [&](const PlacedRow& p) { return stride >= p.stride && stride < p.stride * p.row.size; });
    return of != placed_.end() && keeps(axis.kind, axis.size, stride, of->index * (stride / of->stride));
  }

 private:
  bool apart() const {
    std::unordered_set<Rank> all;
    for (const std::vector<Rank>& group : groups_)
      for (Rank r : group)
        if (!all.insert(r).second) return false;
    return true;
  }

  // Finds the rows of equal distances, up or down, in which the first group's ranks lie, cut where the schedule's rows
  // end. False: there are no such rows.
  bool place_members() {
    const std::vector<Rank>& group = groups_[0];
    const auto ranks = static_cast<Rank>(group.size());
    const auto at = [&](Rank i) { return group[static_cast<std::size_t>(i)] - group[0]; };
    std::size_t axis = 0;
    Row ours;
    for (Rank done = 1; done < ranks;) {
      const Rank stride = at(done);
      Rank size = 2;
      while (size * done < ranks && at(size * done) == size * stride) ++size;
      if (stride == 0 || ranks % (size * done) != 0) return false;
      for (Rank i = done; i < size * done; ++i)
        if (at(i) != at(i % done) + i / done * stride) return false;
      for (Rank left = size, step = std::abs(stride); left > 1;) {
        while (ours.size == 1 && axis < schedule_.axes.size()) ours = row_of(schedule_.axes[axis++]);
        const Rank part = std::min(left, ours.size);
        if (part == 1 || left % part != 0 || ours.size % part != 0) return false;
        placed_.push_back({take(ours, part), step, done * (size / left)});
        left /= part, step *= part;
      }
      done *= size;
    }
    return true;
  }

  // Adds rows of groups, which lie between the rows of the first group's ranks and beyond them.
  bool place_groups() {
    std::ranges::sort(placed_, {}, &PlacedRow::stride);
    std::vector<PlacedRow> all;
    Rank end = 1;
    const auto fill = [&](Rank until) {
      if (until % end != 0) return false;
      if (until > end) all.push_back({{.rotate = true, .flip = true, .at_will = true, .size = until / end}, end});
      return true;
    };
    for (const PlacedRow& placed : placed_) {
      if (!fill(placed.stride)) return false;
      all.push_back(placed);
      end = placed.stride * placed.row.size;
    }
    if (!fill(machine_.ranks())) return false;
    placed_ = std::move(all);
    return true;
  }

  bool keeps(Axis::Kind kind, Rank size, Rank stride, Rank index) const {
    if (kind == Axis::Kind::distinct) return false;
    if (kind == Axis::Kind::rotate) return maps(size, stride, index, [&](Rank x) { return x + 1 == size ? 0 : x + 1; });
    if ((size & (size - 1)) != 0) return false;
    for (Rank bit = 1; bit < size; bit *= 2)
      if (!maps(size, stride, index, [&](Rank x) { return x ^ bit; })) return false;
    return true;
  }

  template <class Renamed>
  bool maps(Rank size, Rank stride, Rank index, const Renamed& renamed) const {
    const auto image = [&](Rank r, Rank step) {
      const Rank digit = r / step % size;
      return r + (renamed(digit) - digit) * step;
    };
    for (const std::vector<Rank>& group : groups_) {
      const auto to = index > 0 ? first_.find(group[0]) : first_.find(image(group[0], stride));
      if (to == first_.end()) return false;
      const std::vector<Rank>& other = groups_[to->second];
      for (std::size_t i = 0; i < group.size(); ++i) {
        const Rank number = index > 0 ? image(static_cast<Rank>(i), index) : static_cast<Rank>(i);
        if (image(group[i], stride) != other[static_cast<std::size_t>(number)]) return false;
      }
    }
    return true;
  }

  const Symmetry& schedule_;
  const Machine& machine_;
  const std::vector<std::vector<Rank>>& groups_;
  std::unordered_map<Rank, std::size_t> first_;  // the number of the group with that first rank
  std::vector<PlacedRow> placed_;
};

}  // namespace

std::optional<Symmetry> folded_symmetry(const Symmetry& schedule, const Machine& machine) {
  if (schedule.ranks() != machine.ranks() || !machine.spec().defects.empty()) return {};
  return shared_symmetry(schedule, machine.alike());
}

std::optional<Symmetry> folded_symmetry(const Machine& machine, const std::vector<ConcurrentGroups>& kinds) {
  if (kinds.empty() || !machine.spec().defects.empty()) return {};
  std::vector<Row> rows = rows_of(machine.alike());
  std::vector<GroupFolding> each;
  for (const ConcurrentGroups& kind : kinds) {
    for (const std::vector<Rank>& group : kind.groups)
      if (static_cast<Rank>(group.size()) != kind.schedule->ranks()) return {};
    if (!each.emplace_back(*kind.schedule, machine, kind.groups).cut(rows)) return {};
  }
  Symmetry found;
  Rank stride = 1;
  const auto add = [&](Axis axis) {
    const bool kept = std::ranges::all_of(each, [&](const GroupFolding& kind) { return kind.keeps(axis, stride); });
    if (!kept) axis.kind = Axis::Kind::distinct;
    found.axes.push_back(axis);
    stride *= axis.size;
    return kept;
  };
  for (const Row& row : rows) {
    if (add(axis_of(row)) || !row.at_will) continue;
    // If renaming the whole row does not keep the groups, renaming a part of it may.
    found.axes.pop_back(), stride /= row.size;
    for (Rank left = row.size, part = 2; left > 1; left /= part) {
      while (left % part != 0) ++part;
      add({Axis::Kind::rotate, part});
    }
  }
  if (found.ranks() != machine.ranks()) return {};
  return found;
}

RankFolding::RankFolding(const Machine& machine, Symmetry symmetry)
    : machine_(machine), symmetry_(std::move(symmetry)) {
  assert(symmetry_.ranks() == machine.ranks());
}

// Multiplies the sizes of the axes within the ranks that share the resource. No axis lies partly within and partly
// beyond.
std::uint32_t RankFolding::sharers(ResourceId r) const {
  if (!folds()) return 1;
  std::uint32_t n = 1;
  Rank stride = 1;
  for (const Axis& axis : symmetry_.axes) {
    if (stride >= machine_.span(r)) break;
    if (axis.kind != Axis::Kind::distinct) n *= static_cast<std::uint32_t>(axis.size);
    stride *= axis.size;
  }
  return n;
}

}  // namespace trellis::sim
