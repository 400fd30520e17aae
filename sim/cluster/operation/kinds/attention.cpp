// The attention core over all heads of a rank: scores, softmax, weighted sums of values. Without flash, scores of all
// pairs pass through memory; with it, blocks of them stay in SBUF, and masked blocks are left out. A pass of the array
// over pairs holds a tile of 128 keys and moves all queries; a head that is narrower than the array wastes the rest.
#include <cmath>

#include "sim/cluster/operation/operation.h"

namespace trellis::sim {
namespace {

struct CoreWork {
  double tensor, vector, scalar;  // passes over pairs
  double spilled;                 // arrays of all pairs that are written or read
  double reads, writes;           // arrays of queries' size, of keys' size
  double products;                // of pairs by a head's elements, for FLOPs
};

EngineTimes core(const OperationShape& s, const EngineRates& e, const CoreWork& w) {
  const auto queries = static_cast<double>(s.rows), keys = static_cast<double>(s.columns);
  const auto heads = static_cast<double>(s.batch), head = static_cast<double>(s.inner);
  const double share = s.flash && s.causal ? 0.5 : 1, pairs = share * heads * queries * keys;
  const double tiles = std::ceil(keys / e.lanes()) * std::ceil(head / e.lanes());
  const double bytes = bytes_of(s.type), row = head * bytes;
  EngineTimes t;
  t.tensor = w.tensor * share * heads * e.tile_passes(tiles, queries, s.type);
  t.vector = e.vector(w.vector * pairs, s.type);
  t.scalar = e.scalar(w.scalar * pairs);
  const double own = heads * head * bytes * (w.reads * queries + w.writes * keys / static_cast<double>(s.shared));
  const double spilled = w.spilled * pairs * bytes;
  t.bytes = own + spilled;
  t.memory =
      e.memory(own, row * heads) + e.memory(spilled, keys * heads * bytes);  // scores lie as the next pass wants them
  t.flops = 2 * w.products * (s.causal ? 0.5 : 1) * heads * queries * keys * head;
  return t;
}

EngineTimes forward(const OperationShape& s, const EngineRates& e) {
  return core(s, e,
              {.tensor = 3,
               .vector = s.dropout ? 6.0
                         : s.flash ? 2.0
                                   : 4.0,
               .scalar = 1,
               .spilled = s.flash ? 0.0 : 2.0,
               .reads = 2,
               .writes = 2,
               .products = 2});
}

EngineTimes backward(const OperationShape& s, const EngineRates& e) {
  return core(s, e,
              {.tensor = s.flash ? 8.0 : 6.0,
               .vector = s.flash ? 4.0 : 5.0,
               .scalar = s.flash ? 2.0 : 1.0,
               .spilled = s.flash ? 0.0 : 5.0,
               .reads = 4,
               .writes = 4,
               .products = 5});
}

constexpr const char* extents =
    "rows queries by columns keys of heads with inner elements, batch of them; shared heads "
    "to one of keys";
using Registered = OperationKind::Registered;
const Registered attention({.name = "attention",
                            .summary = "softmax(q k) v, with flash or through memory",
                            .extents = extents,
                            .work = forward});
const Registered gradient(
    {.name = "attention_gradient", .summary = "of attention: of q, k and v", .extents = extents, .work = backward});

}  // namespace
}  // namespace trellis::sim
