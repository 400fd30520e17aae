// Direct exchange between chips of several ranks, as Neuron's Mesh groups it. Each pair of chips is connected through
// one gate rank on each side. Data is summed within the chip before crossing, and distributed within the chip after
// crossing. The innermost dimension is the chip.
#include "schedule/algorithms/patterns/direct.h"

namespace trellis::schedule {
namespace {

using enum Collective;

struct Mesh {
  Rank cores = 1;  // ranks per chip
  Rank chips = 1;

  Rank core(Rank r) const { return r % cores; }
  Rank chip(Rank r) const { return r / cores; }
  Rank rank(Rank chip, Rank core) const { return chip * cores + core; }
  Rank beside(Rank r, Rank by) const { return rank(chip(r), (core(r) + by + cores) % cores); }
  Rank ahead(Rank chip, Rank distance) const { return (chip + distance) % chips; }
  Rank behind(Rank chip, Rank distance) const { return (chip - distance + chips) % chips; }

  // gate(): the rank that connects a chip to the chip `distance` behind it. With many chips, a rank is the gate for
  // several distances, one in each turn: gate_for() returns the distance; 0: none in this turn.
  Rank gate(Rank chip, Rank distance) const { return rank(chip, (distance - 1) % cores); }
  Rank turns() const { return (chips + cores - 2) / cores; }
  Rank gate_for(Rank r, Rank turn) const {
    const Rank distance = turn * cores + core(r) + 1;
    return distance < chips ? distance : 0;
  }
  // Scratch slots for arrivals: first those from the own chip, by turn, distance of the sender and core of the block;
  // then those from other chips, by distance.
  std::int64_t from_beside(Rank turn, Rank by, Rank core) const {
    return (std::int64_t{turn} * cores + by) * cores + core;
  }
  std::int64_t from_chip(Rank distance) const { return from_beside(turns() + 1, 0, 0) + distance; }
};

// Calls move(block, count) for the share of all blocks of a chip. It is one run if there is only this share.
template <class Move>
void each_run(const Mesh& mesh, const BlockShare& share, Rank chip, Move move) {
  if (share.pieces == 1) return move(mesh.rank(chip, 0), mesh.cores);
  for (Rank core = 0; core < mesh.cores; ++core) move(mesh.rank(chip, core), 1);
}

// Calls move(rank, other) for every pair of ranks of a chip at this distance; one pair per rank and round.
template <class Move>
void each_beside(Builder& b, const Mesh& mesh, Rank by, Move move) {
  for (Rank r : b.senders([&](Rank me) { return mesh.beside(me, -by); })) move(r, mesh.beside(r, by));
}

// Where the holder has its chip's contributions to these blocks, core by core. Those to blocks that it sends as a gate
// are told apart by turn; turn turns() stands for its own block.
std::vector<ChunkPlace> on_chip(const Mesh& mesh, const BlockShare& share, Rank holder, Rank turn, Rank block,
                                Rank count) {
  std::vector<ChunkPlace> places;
  for (Rank core = 0; core < mesh.cores; ++core) {
    const Rank by = (mesh.core(holder) - core + mesh.cores) % mesh.cores;
    if (by == 0)
      places.push_back(share.at(holder, block, count));
    else
      places.push_back(share.arrival(holder, block, mesh.from_beside(turn, by, mesh.core(block)), count));
  }
  return places;
}

// Each rank receives from its chip the blocks that it will send for the chip, and its own block.
void sum_over_chip(Builder& b, const Mesh& mesh, const BlockShare& share) {
  const Rank turns = mesh.turns();
  for (Rank turn = 0; turn < turns; ++turn)
    for (Rank by = 1; by < mesh.cores; ++by)
      each_beside(b, mesh, by, [&](Rank r, Rank gate) {
        if (const Rank distance = mesh.gate_for(gate, turn))
          each_run(mesh, share, mesh.behind(mesh.chip(r), distance), [&](Rank block, Rank count) {
            const std::int64_t slot = mesh.from_beside(turn, by, mesh.core(block));
            b.copy(share.at(r, block, count), share.arrival(gate, block, slot, count));
          });
      });
  for (Rank by = 1; by < mesh.cores; ++by)
    each_beside(b, mesh, by, [&](Rank r, Rank owner) {
      b.copy(share.at(r, owner), share.arrival(owner, owner, mesh.from_beside(turns, by, mesh.core(owner))));
    });
  for (Rank r : b.senders())
    for (Rank turn = 0; turn < turns && mesh.cores > 1; ++turn)
      if (const Rank distance = mesh.gate_for(r, turn))
        each_run(mesh, share, mesh.behind(mesh.chip(r), distance), [&](Rank block, Rank count) {
          b.reduce_all(on_chip(mesh, share, r, turn, block, count), share.at(r, block, count));
        });
}

// The chips' sums go to the owners of the blocks, which add them in chip order.
void sum_over_chips(Builder& b, const Mesh& mesh, const BlockShare& share) {
  for (Rank distance = 1; distance < mesh.chips; ++distance)
    for (Rank r : b.senders([&](Rank me) { return mesh.gate(mesh.ahead(mesh.chip(me), distance), distance); })) {
      if (r != mesh.gate(mesh.chip(r), distance)) continue;
      for (Rank core = 0; core < mesh.cores; ++core) {
        const Rank owner = mesh.rank(mesh.behind(mesh.chip(r), distance), core);
        b.copy(share.at(r, owner), share.arrival(owner, owner, mesh.from_chip(distance)));
      }
    }
  for (Rank r : b.senders()) {
    std::vector<ChunkPlace> sources;
    for (Rank chip = 0; chip < mesh.chips; ++chip) {
      const std::vector<ChunkPlace> here = on_chip(mesh, share, r, mesh.turns(), r, 1);
      if (chip == mesh.chip(r))
        sources.insert(sources.end(), here.begin(), here.end());
      else
        sources.push_back(share.arrival(r, r, mesh.from_chip((chip - mesh.chip(r) + mesh.chips) % mesh.chips)));
    }
    b.reduce_all(sources, share.at(r, r));
  }
}

void cross_to_gates(Builder& b, const Mesh& mesh, const BlockShare& share) {
  for (Rank distance = 1; distance < mesh.chips; ++distance) {
    const auto arriving = [&](Rank me) {
      std::vector<Rank> chip;
      for (Rank core = 0; core < mesh.cores && me == mesh.gate(mesh.chip(me), distance); ++core)
        chip.push_back(mesh.rank(mesh.behind(mesh.chip(me), distance), core));
      return chip;
    };
    for (Rank r : b.senders(arriving))
      b.copy(share.at(r, r), share.at(mesh.gate(mesh.ahead(mesh.chip(r), distance), distance), r));
  }
}

void spread_over_chip(Builder& b, const Mesh& mesh, const BlockShare& share) {
  for (Rank by = 1; by < mesh.cores; ++by)
    each_beside(b, mesh, by, [&](Rank r, Rank other) { b.copy(share.at(r, r), share.at(other, r)); });
  for (Rank turn = 0; turn < mesh.turns(); ++turn)
    for (Rank by = 1; by < mesh.cores; ++by)
      each_beside(b, mesh, by, [&](Rank gate, Rank other) {
        if (const Rank distance = mesh.gate_for(gate, turn))
          each_run(mesh, share, mesh.behind(mesh.chip(gate), distance), [&](Rank block, Rank count) {
            b.copy(share.at(gate, block, count), share.at(other, block, count));
          });
      });
}

Mesh mesh_of(const Request& r) { return {.cores = r.dims.front(), .chips = r.ranks() / r.dims.front()}; }
std::int64_t pieces(const Request& r) { return r.shares() * (r.operation.collective == all_reduce ? r.ranks() : 1); }

void build(const Request& request, Builder& b) {
  const Mesh mesh = mesh_of(request);
  const auto all_do = [&](auto part) {
    each_share(request, b, [&](Builder& on, const BlockShare& share) { part(on, mesh, share); });
  };
  if (reduces(request.operation.collective)) all_do(sum_over_chip), all_do(sum_over_chips);
  if (request.operation.collective == reduce_scatter || request.operation.collective == reduce_scatter_v) return;
  all_do(cross_to_gates), all_do(spread_over_chip);
}

Symmetry symmetry(const Request& r) {
  return {{{SymmetryAxis::Kind::distinct, mesh_of(r).cores}, {SymmetryAxis::Kind::rotate, mesh_of(r).chips}}};
}

const RegisteredAlgorithm registered{{
    .name = "mesh",
    .summary = "direct exchange between chips, sums formed and blocks spread inside them; few steps for small messages",
    .constraint = "any rank count; the innermost dimension is a chip",
    .serves = {all_reduce, reduce_scatter, all_gather, all_gather_v, reduce_scatter_v},
    .pieces = pieces,
    .build = build,
    .symmetry = symmetry,
    .usual_shape = UsualShape::chips,
    .renown = 6,
}};

}  // namespace
}  // namespace trellis::schedule
