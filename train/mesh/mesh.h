// The mesh of ranks of a training job: who works with whom along each axis, and in which order. A group's order
// matters: its i-th member owns chunk i of reduce_scatter and all_gather, and is stage i of a pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"

namespace trellis::train {

using schedule::Rank;
using Group = std::vector<Rank>;
using Groups = std::vector<Group>;

// tensor x context x data x pipeline ranks. Experts divide data x context a second time.
struct MeshShape {
  Rank pipeline = 1;
  Rank data = 1;
  Rank context = 1;
  Rank tensor = 1;
  Rank expert = 1;
  Rank ranks() const { return pipeline * data * context * tensor; }
};

// Where a rank stands. Ranks are numbered with tensor fastest, then context, data, pipeline.
struct Place {
  Rank pipeline = 0, data = 0, context = 0, tensor = 0;
  bool operator==(const Place&) const = default;
};

// How tensor groups lie on the hardware.
// plain: neighbours. trn1: for tensor 4, every (node/4)th rank of a node, because its chips form such rings. logic2:
// a node of 2 x tensor ranks (trn2) is cut into four rows; one group has rows 0 and 3, the next one rows 1 and 2.
enum class Wiring : std::uint8_t { plain, trn1, logic2 };
std::string_view name(Wiring);

enum class Axis : std::uint8_t { tensor, data, pipeline, context, expert_model, expert_data, sharding, kv, tied };
std::string_view name(Axis);

// The axis along which ranks have the same weights and different tokens: data, or data and context together.
Axis replica_axis(const MeshShape&);

// The size of an axis's groups, and the index that a place has in its group. Both throw invalid_argument for kv and
// tied.
Rank size_of(const MeshShape&, Axis);
Rank index_of(const MeshShape&, Axis, const Place&);

class Mesh {
 public:
  // node: ranks of one node; trn1 needs it. Throws invalid_argument that names the field and what was expected.
  explicit Mesh(const MeshShape&, Wiring = Wiring::plain, Rank node = 32);

  const MeshShape& shape() const { return shape_; }
  Wiring wiring() const { return wiring_; }
  Rank ranks() const { return shape_.ranks(); }
  Rank rank(const Place&) const;
  Place place(Rank) const;

  // All groups of an axis, in the order in which every rank creates them. The axis sharding joins data and context:
  // ZeRO-1 divides optimizer state among its ranks. Throws invalid_argument for kv and tied.
  Groups groups(Axis) const;
  Group group(Axis, Rank) const;  // the group that the rank is in

  // Tensor ranks that hold copies of the same key and value heads, each of which has `copies` of them. trn1 keeps
  // copies tensor / copies apart, the others next to each other.
  Groups kv_groups(Rank copies) const;

 private:
  Rank& at(const Place&);
  MeshShape shape_;
  Wiring wiring_;
  std::vector<Rank> ranks_;    // by place
  std::vector<Place> places_;  // by rank
};

// Which positions of a sequence a rank of the context axis has. The sequence is cut into 2 x ranks equal stretches; a
// rank has one as far from the front as the other from the back, so that under a causal mask all have the same work.
struct SequencePart {
  std::size_t whole = 0;  // positions of all ranks
  Rank ranks = 1, rank = 0;

  std::size_t count() const { return whole / static_cast<std::size_t>(ranks); }
  // With one rank, the sequence is one stretch.
  std::size_t stretches() const { return ranks == 1 ? 1 : 2; }
  std::size_t stretch() const { return count() / stretches(); }  // its positions
  std::size_t first_of(std::size_t stretch_number) const {
    return (stretch_number == 0 ? static_cast<std::size_t>(rank) : static_cast<std::size_t>(2 * ranks - 1 - rank)) *
           stretch();
  }
  // The position in the sequence of the i-th position here.
  std::size_t position(std::size_t i) const { return first_of(i / stretch()) + i % stretch(); }
};

inline SequencePart sequence_part(std::size_t whole, const MeshShape& s, const Place& p) {
  return {whole, s.context, p.context};
}

}  // namespace trellis::train
