#include "schedule/collective.h"

#include <fmt/format.h>

#include <limits>

#include "schedule/collective_traits.h"
#include "schedule/invalid_collective.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

using enum Collective;

bool is_source(const Task& t, Rank rank) {
  for (const Pair& pair : t.operation.pairs)
    if (pair.source == rank) return true;
  return false;
}

const Pair* pair_into(const Task& t, Rank rank) {
  for (const Pair& pair : t.operation.pairs)
    if (pair.target == rank) return &pair;
  return nullptr;
}

void check_rank(std::string_view member, const char* what, Rank rank, Rank ranks) {
  if (rank < 0 || rank >= ranks)
    throw InvalidCollective(member, fmt::format("{} {} is not a rank: expected 0 to {}", what, rank, ranks - 1));
}

void check_pairs(const Task& t) {
  std::vector<bool> sends(t.ranks), receives(t.ranks);
  for (const Pair& pair : t.operation.pairs) {
    check_rank("pairs", "permute source", pair.source, t.ranks);
    check_rank("pairs", "permute target", pair.target, t.ranks);
    if (sends[pair.source])
      throw InvalidCollective("pairs", fmt::format("permute source {} is given twice", pair.source));
    if (receives[pair.target])
      throw InvalidCollective("pairs", fmt::format("permute target {} is given twice", pair.target));
    sends[pair.source] = receives[pair.target] = true;
  }
}

}  // namespace

std::span<const Collective> collectives() {
  static const std::vector<Collective> all = [] {
    std::vector<Collective> list;
    for (const CollectiveTraits& t : all_traits()) list.push_back(t.collective);
    return list;
  }();
  return all;
}

std::string_view name(Collective c) { return traits(c).name; }
bool reduces(Collective c) { return traits(c).reduces; }
bool rooted(Collective c) { return traits(c).rooted; }
bool by_block(Collective c) { return traits(c).by_block; }
bool carries_data(Collective c) { return c != barrier; }
bool uneven(Collective c) { return traits(c).uneven; }

Collective collective_named(std::string_view wanted) {
  std::string known;
  for (const CollectiveTraits& r : all_traits()) {
    if (r.name == wanted) return r.collective;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", r.name);
  }
  text::refuse("no collective is called '{}': expected one of {}", wanted, known);
}

void check(const Task& t) {
  if (static_cast<std::size_t>(t.operation.collective) >= all_traits().size())
    throw InvalidCollective(
        "collective", fmt::format("collective number {}: expected 0 to {}", static_cast<int>(t.operation.collective),
                                  all_traits().size() - 1));
  if (t.ranks < 1) throw InvalidCollective("ranks", fmt::format("{} ranks: expected at least 1", t.ranks));
  if (t.pieces < 1)
    throw InvalidCollective("pieces", fmt::format("{} pieces in a block: expected at least 1", t.pieces));
  if (data_chunks(t) > std::numeric_limits<std::int32_t>::max())
    throw InvalidCollective("pieces", fmt::format("{} ranks of {} pieces make {} chunks: expected at most {}", t.ranks,
                                                  t.pieces, data_chunks(t), std::numeric_limits<std::int32_t>::max()));
  const bool has_root = rooted(t.operation.collective) || t.operation.collective == send_recv;
  if (has_root)
    check_rank("root", "root", t.operation.root, t.ranks);
  else if (t.operation.root != 0)
    throw InvalidCollective("root",
                            fmt::format("root {}: {} has none", t.operation.root, name(t.operation.collective)));
  if (t.operation.collective == send_recv)
    check_rank("peer", "peer", t.operation.peer, t.ranks);
  else if (t.operation.peer != 0)
    throw InvalidCollective("peer",
                            fmt::format("peer {}: {} has none", t.operation.peer, name(t.operation.collective)));
  if (t.even && uneven(t.operation.collective))
    throw InvalidCollective(
        "even", fmt::format("{} has blocks of all sizes: they can't be even", name(t.operation.collective)));
  if (t.operation.in_place && counts_by_pair(t.operation.collective))
    throw InvalidCollective(
        "in_place", "all_to_all_v can't be in place: the blocks sent and received would overlap at different sizes");
  if (t.operation.collective == permute)
    check_pairs(t);
  else if (!t.operation.pairs.empty())
    throw InvalidCollective("pairs", fmt::format("{} takes no source-target pairs", name(t.operation.collective)));
}

std::int64_t data_chunks(const Task& t) {
  return (by_block(t.operation.collective) ? std::int64_t{t.ranks} : 1) * t.pieces;
}

std::int64_t input_chunks(const Task& t, Rank rank) {
  switch (t.operation.collective) {
    case all_gather:
    case all_gather_v:
    case gather:
      return t.pieces;
    case broadcast:
    case scatter:
    case send_recv:
      return rank == t.operation.root ? data_chunks(t) : 0;
    case permute:
      return is_source(t, rank) ? data_chunks(t) : 0;
    default:
      return data_chunks(t);
  }
}

std::int64_t output_chunks(const Task& t, Rank rank) {
  switch (t.operation.collective) {
    case reduce_scatter:
    case reduce_scatter_v:
    case scatter:
      return t.pieces;
    case reduce:
    case gather:
      return rank == t.operation.root ? data_chunks(t) : 0;
    case send_recv:
      return rank == t.operation.peer ? data_chunks(t) : 0;
    case permute:
      return pair_into(t, rank) ? data_chunks(t) : 0;
    default:
      return data_chunks(t);
  }
}

std::int64_t kind_of_data(const Task& t, Rank rank, std::int64_t chunk) {
  if (t.even) return 0;
  if (by_block(t.operation.collective) && !uneven(t.operation.collective)) return chunk % t.pieces;
  if (!counts_by_pair(t.operation.collective)) return chunk;
  const std::int64_t source = chunk / t.pieces, piece = chunk % t.pieces;
  return (source * t.ranks + rank) * t.pieces + piece;
}

std::int64_t kind_of_input(const Task& t, Rank rank, std::int64_t chunk) {
  if (t.even) return 0;
  if (t.operation.collective == all_gather_v) return std::int64_t{rank} * t.pieces + chunk;
  // The length of a block depends on its sender and receiver: each pair's chunks are kinds of their own.
  if (counts_by_pair(t.operation.collective)) return std::int64_t{rank} * t.ranks * t.pieces + chunk;
  return kind_of_data(t, rank, chunk);
}

std::int64_t kind_of_output(const Task& t, Rank rank, std::int64_t chunk) {
  return kind_of_data(t, rank,
                      t.operation.collective == reduce_scatter_v ? std::int64_t{rank} * t.pieces + chunk : chunk);
}

Wanted wanted(const Task& t, Rank rank, std::int64_t chunk) {
  using Form = Wanted::Form;
  const std::int64_t block = chunk / t.pieces, piece = chunk % t.pieces;
  switch (t.operation.collective) {
    case all_reduce:
    case reduce:
      return {Form::sum, 0, chunk};
    case reduce_scatter:
    case reduce_scatter_v:
      return {Form::sum, 0, std::int64_t{rank} * t.pieces + chunk};
    case all_gather:
    case all_gather_v:
    case gather:
      return {Form::copy, static_cast<Rank>(block), piece};
    case broadcast:
    case send_recv:
      return {Form::copy, t.operation.root, chunk};
    case scatter:
      return {Form::copy, t.operation.root, std::int64_t{rank} * t.pieces + chunk};
    case all_to_all:
    case all_to_all_v:
      return {Form::copy, static_cast<Rank>(block), std::int64_t{rank} * t.pieces + piece};
    case permute:
      return {Form::copy, pair_into(t, rank)->source, chunk};
    case barrier:
      return {Form::all_arrived, 0, chunk};
  }
  return {};
}

std::int64_t Cells::at(Buffer buffer, std::int64_t chunk) const {
  switch (buffer) {
    case Buffer::input:
      return input + chunk;
    case Buffer::output:
      return output + chunk;
    case Buffer::scratch:
      return scratch + chunk;
  }
  return -1;
}

Cells cells(const Task& t, Rank rank) {
  const std::int64_t in = input_chunks(t, rank), out = output_chunks(t, rank);
  if (!t.operation.in_place || in == 0 || out == 0) return {0, in, in + out};
  const std::int64_t own = std::int64_t{rank} * t.pieces;
  if (in < out) return {own, 0, out};
  if (out < in) return {0, own, in};
  return {0, 0, in};
}

}  // namespace trellis::schedule
