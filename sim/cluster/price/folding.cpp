#include "sim/cluster/price/folding.h"

#include <cassert>

namespace trellis::sim {
namespace {

using schedule::Axis;
using schedule::Symmetry;

// What one row of ranks allows, in the schedule or in the machine.
struct Row {
  bool rotate = false, flip = false;
  Rank size = 1;
};

Row row_of(const Axis& axis) {
  return {axis.kind == Axis::Kind::rotate || (axis.kind == Axis::Kind::flip && axis.size <= 2),
          axis.kind == Axis::Kind::flip || (axis.kind == Axis::Kind::rotate && axis.size <= 2), axis.size};
}

Row row_of(const RowSymmetry& alike) {
  const bool any = alike.kind == RowSymmetry::Kind::any;
  return {any || alike.kind == RowSymmetry::Kind::rotate,
          any || (alike.kind == RowSymmetry::Kind::rotate && alike.size <= 2), alike.size};
}

// The innermost part of a row. A row that may be rotated can still be rotated by whole parts, but within a part nothing
// is alike. A row that may be flipped, or renamed at will, allows the same within each part.
Row take(Row& row, Rank size, bool at_will) {
  Row part = row;
  part.size = size;
  if (row.size != size) {
    part.rotate = at_will;
    part.flip = row.flip;
    row.size /= size;
    return part;
  }
  row.size = 1;
  return part;
}

Symmetry distinct(Rank ranks) { return {{{Axis::Kind::distinct, ranks}}}; }

}  // namespace

Symmetry shared_symmetry(const Symmetry& schedule, const std::vector<RowSymmetry>& machine) {
  Symmetry shared;
  std::size_t i = 0, j = 0;
  Row ours, theirs;
  bool at_will = false;
  for (;;) {
    while (ours.size == 1 && i < schedule.axes.size()) ours = row_of(schedule.axes[i++]);
    while (theirs.size == 1 && j < machine.size()) {
      at_will = machine[j].kind == RowSymmetry::Kind::any;
      theirs = row_of(machine[j++]);
    }
    if (ours.size == 1 || theirs.size == 1) break;
    const Rank size = std::min(ours.size, theirs.size);
    if (ours.size % size != 0 || theirs.size % size != 0) return distinct(schedule.ranks());
    const Row a = take(ours, size, false), b = take(theirs, size, at_will);
    const Axis::Kind kind = a.rotate && b.rotate ? Axis::Kind::rotate
                            : a.flip && b.flip   ? Axis::Kind::flip
                                                 : Axis::Kind::distinct;
    shared.axes.push_back({kind, size});
  }
  if (ours.size != theirs.size || shared.ranks() != schedule.ranks()) return distinct(schedule.ranks());
  return shared;
}

std::optional<Symmetry> folded_symmetry(const Symmetry& schedule, const Machine& machine,
                                        const std::vector<Rank>& members) {
  if (!members.empty() || schedule.ranks() != machine.ranks() || !machine.spec().defects.empty()) return {};
  return shared_symmetry(schedule, machine.alike());
}

Folding::Folding(const Machine& machine, Symmetry symmetry) : machine_(machine), symmetry_(std::move(symmetry)) {
  assert(symmetry_.ranks() == machine.ranks());
}

// An axis lies either within the ranks that share the resource or beyond them.
std::uint32_t Folding::sharers(ResourceId r) const {
  if (!folds()) return 1;
  std::uint32_t n = 1;
  Rank stride = 1;
  for (const schedule::Axis& axis : symmetry_.axes) {
    if (stride >= machine_.span(r)) break;
    if (axis.kind != schedule::Axis::Kind::distinct) n *= static_cast<std::uint32_t>(axis.size);
    stride *= axis.size;
  }
  return n;
}

}  // namespace trellis::sim
