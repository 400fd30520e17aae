// The attention core over all heads of a rank: scores, softmax, weighted sums of values. Without flash, scores of all
// pairs pass through memory; with it, blocks of them stay in SBUF, and masked blocks are left out. A pass of the array
// over pairs holds a tile of 128 keys and moves all queries; a head that is narrower than the array wastes the rest.
#include <cmath>

#include "schedule/graph/attention_arrays.h"
#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

struct CoreWork {
  double tensor, vector, scalar;  // passes over pairs
  double spilled;                 // arrays of all pairs that are written or read
  double reads, writes;           // number of arrays of queries' size, and of keys' size
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
  const double of_keys = heads * head * bytes * w.writes * keys, once = of_keys / static_cast<double>(s.shared);
  const double own = heads * head * bytes * w.reads * queries + once;
  const double spilled = w.spilled * pairs * bytes;
  t.bytes = own + spilled;
  t.memory = e.memory(own, row * heads) + e.memory(spilled, keys * heads * bytes);  // spilled scores move in whole rows
  t.shared = e.memory(of_keys - once, row * heads);
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
               .spilled = schedule::pair_passes(s).forward,
               .reads = 2,
               .writes = 2,
               .products = 2});
}

EngineTimes backward(const OperationShape& s, const EngineRates& e) {
  return core(s, e,
              {.tensor = s.flash ? 8.0 : 6.0,
               .vector = s.flash ? 4.0 : 5.0,
               .scalar = s.flash ? 2.0 : 1.0,
               .spilled = schedule::pair_passes(s).backward,
               .reads = 4,
               .writes = 4,
               .products = 5});
}

// A program of core/ for heads of 128 elements, with flash: a narrower head wastes the rest of the array there, too.
ProgramOf program_of_heads(std::string name) {
  return [name = std::move(name)](const OperationShape& s, const EngineRates& e) -> std::optional<CoreProgram> {
    constexpr std::uint64_t head = 128, block = 128;
    if (!s.flash || s.rows != s.columns || s.inner > head) return {};
    OperationShape plain = s;
    plain.inner = head, plain.shared = 1, plain.result = "", plain.dropout = false;
    plain.rows = plain.columns = (s.rows + block - 1) / block * block;
    if (e.narrowed(s.type)) plain.type = "bf16";
    const auto type = program_type(plain);
    if (!type) return {};
    return CoreProgram{
        .name = name,
        .parameters = {{"seq_len", std::to_string(plain.rows)}, {"type", *type}, {"causal", s.causal ? "yes" : "no"}},
        .grows = "heads",
        .extent = s.batch,
        .most = 4,
        .does = std::move(plain)};
  };
}

constexpr const char* extents =
    "rows queries by columns keys of heads with inner elements, batch of them; shared heads "
    "to one of keys";
using Registered = OperationModel::Registered;
const Registered attention({.name = "attention",
                            .summary = "softmax(q k) v, with flash or through memory",
                            .extents = extents,
                            .work = forward,
                            .program = program_of_heads("flash_attention")});
const Registered gradient({.name = "attention_gradient",
                           .summary = "of attention: of q, k and v",
                           .extents = extents,
                           .work = backward,
                           .program = program_of_heads("flash_attention_backward")});

}  // namespace
}  // namespace trellis::sim
