#include "ccl/plan/call_check.h"

#include "schedule/collective_traits.h"
#include "text/refuse.h"

#include <cstdint>
#include <limits>
#include <numeric>

namespace trellis::ccl {
namespace {

std::string_view word(const Call& c) { return schedule::name(c.operation.collective); }

std::size_t sum(const std::vector<std::size_t>& counts) {
  std::size_t total = 0;
  for (std::size_t c : counts)
    if (__builtin_add_overflow(total, c, &total)) throw std::invalid_argument("counts: their sum fits no memory");
  return total;
}

// Multiplies two sizes. False: the product is more than half of the address space, and no buffer can be that large.
bool fits(std::size_t a, std::size_t b, std::size_t& product) {
  return !__builtin_mul_overflow(a, b, &product) && product <= std::numeric_limits<std::size_t>::max() / 2;
}

std::size_t bytes_of(const Call& c, std::size_t elements) {
  std::size_t bytes = 0;
  if (!fits(elements, kernels::size_of(c.type), bytes))
    text::refuse("{}: {} elements of {} do not fit in memory", word(c), elements, name(c.type));
  return bytes;
}

[[noreturn]] void refuse_rank(const Call& c, std::string_view what, Rank r, Rank ranks) {
  text::refuse("{}: {} {}; expected 0 to {}", word(c), what, r, ranks - 1);
}

bool is_rank(Rank r, Rank ranks) { return r >= 0 && r < ranks; }

void check_counts(const Call& c, std::string_view what, const std::vector<std::size_t>& counts, Rank ranks) {
  if (counts.size() != static_cast<std::size_t>(ranks))
    text::refuse("{}: {} {}; expected one for each of {} ranks", word(c), counts.size(), what, ranks);
}

void check_parts(const Call& c, Rank ranks) {
  const bool point = c.operation.collective == Collective::send_recv;
  if ((point || schedule::rooted(c.operation.collective)) && !is_rank(c.operation.root, ranks))
    refuse_rank(c, "root", c.operation.root, ranks);
  if (point && !is_rank(c.operation.peer, ranks)) refuse_rank(c, "peer", c.operation.peer, ranks);
  if (schedule::uneven(c.operation.collective)) check_counts(c, "counts", c.counts, ranks);
  if (schedule::counts_by_pair(c.operation.collective)) check_counts(c, "arriving counts", c.arriving_counts, ranks);
  if (c.operation.collective == Collective::barrier && c.count != 0)
    text::refuse("barrier: {} elements; expected none", c.count);
  const auto op = static_cast<std::size_t>(c.op.kind);
  if (op >= kernels::reduction_count) text::refuse("{}: no operator has number {}", word(c), op);
  if (static_cast<std::size_t>(c.type) >= kernels::dtype_count)
    text::refuse("{}: no type has number {}", word(c), static_cast<int>(c.type));
}

bool is(const Call& c, std::initializer_list<Collective> any) {
  for (Collective one : any)
    if (c.operation.collective == one) return true;
  return false;
}

}  // namespace

BufferBytes extents_of(const Call& c, Rank rank, Rank ranks) {
  using enum Collective;
  const auto me = static_cast<std::size_t>(rank);
  const std::size_t one = bytes_of(c, c.count);
  std::size_t all = 0;
  if (schedule::by_block(c.operation.collective) && !fits(one, static_cast<std::size_t>(ranks), all))
    text::refuse("{}: {} elements for each of {} ranks do not fit in memory", word(c), c.count, ranks);
  switch (c.operation.collective) {
    case all_reduce:
      return {one, one};
    case broadcast:
      return {rank == c.operation.root ? one : 0, one};
    case reduce:
      return {one, rank == c.operation.root ? one : 0};
    case reduce_scatter:
      return {all, one};
    case all_gather:
      return {one, all};
    case gather:
      return {one, rank == c.operation.root ? all : 0};
    case scatter:
      return {rank == c.operation.root ? all : 0, one};
    case all_to_all:
      return {all, all};
    case all_gather_v:
      return {bytes_of(c, c.counts[me]), bytes_of(c, sum(c.counts))};
    case reduce_scatter_v:
      return {bytes_of(c, sum(c.counts)), bytes_of(c, c.counts[me])};
    case all_to_all_v:
      return {bytes_of(c, sum(c.counts)), bytes_of(c, sum(c.arriving_counts))};
    case send_recv:
      return {rank == c.operation.root ? one : 0, rank == c.operation.peer ? one : 0};
    case permute: {
      BufferBytes e;
      for (const schedule::Pair& pair : c.operation.pairs) {
        if (pair.source == rank) e.input = one;
        if (pair.target == rank) e.output = one;
      }
      return e;
    }
    case barrier:
      return {};
  }
  return {};
}

CallShape shape_of(const Call& c, Rank rank, Rank ranks) {
  using enum Collective;
  check_parts(c, ranks);
  CallShape shape{.extents = extents_of(c, rank, ranks)};
  std::size_t own = bytes_of(c, c.count) * static_cast<std::size_t>(rank);
  if (schedule::uneven(c.operation.collective))
    own = bytes_of(c, std::accumulate(c.counts.begin(), c.counts.begin() + rank, std::size_t{0}));
  if (is(c, {all_gather, all_gather_v, gather})) shape.before_output = own;
  if (is(c, {reduce_scatter, reduce_scatter_v, scatter})) shape.before_input = own;
  shape.in_place = schedule::traits(c.operation.collective).may_alias;
  return shape;
}

bool check_places(const Call& c, const CallShape& shape) {
  // Whether the call is half of a message from this rank to itself: one call sends it and another receives it, so one
  // of the two buffers may be null.
  const auto half = [&] {
    return c.operation.collective == Collective::send_recv && c.operation.root == c.operation.peer &&
           (c.input != nullptr || c.output != nullptr);
  };
  const BufferBytes& e = shape.extents;
  if (e.input != 0 && c.input == nullptr && !half()) text::refuse("{}: the input is null", word(c));
  if (e.output != 0 && c.output == nullptr && !half()) text::refuse("{}: the output is null", word(c));
  const auto in = reinterpret_cast<std::uintptr_t>(c.input), out = reinterpret_cast<std::uintptr_t>(c.output);
  if (in + e.input < in || out + e.output < out)
    text::refuse("{}: {} bytes from there on pass the end of memory", word(c), std::max(e.input, e.output));
  const bool overlap = e.input != 0 && e.output != 0 && in < out + e.output && out < in + e.input;
  if (!overlap || half()) return false;
  if (!shape.in_place || in + shape.before_input != out + shape.before_output)
    text::refuse("{}: input and output overlap, {} bytes from {} and {} from {}, and not in place", word(c), e.input,
                 c.input, e.output, const_cast<const void*>(c.output));
  return true;
}

bool check(const Call& c, Rank rank, Rank ranks) { return check_places(c, shape_of(c, rank, ranks)); }

bool CallCheck::operator()(const Call& c) {
  const auto collective = static_cast<std::size_t>(c.operation.collective);
  if (collective >= known_.size()) return check(c, rank_, ranks_);
  Known& known = known_[collective];
  if (known.asked && known.asked->is(c, {})) return check_places(c, known.shape);
  const CallShape shape = shape_of(c, rank_, ranks_);
  known = {PlanKey(c, {}), shape};
  return check_places(c, shape);
}

}  // namespace trellis::ccl
