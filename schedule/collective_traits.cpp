#include "schedule/collective_traits.h"

#include <algorithm>
#include <array>

namespace trellis::schedule {
namespace {

using enum Collective;

constexpr std::array<CollectiveTraits, 14> table{{
    {.collective = all_reduce, .name = "all_reduce", .reduces = true, .words = "allr", .msccl = "allreduce"},
    {.collective = reduce_scatter,
     .name = "reduce_scatter",
     .reduces = true,
     .by_block = true,
     .words = "redsct",
     .msccl = "reducescatter"},
    {.collective = all_gather, .name = "all_gather", .by_block = true, .words = "allg", .msccl = "allgather"},
    {.collective = broadcast, .name = "broadcast", .rooted = true},
    {.collective = reduce, .name = "reduce", .reduces = true, .rooted = true},
    {.collective = gather, .name = "gather", .rooted = true, .by_block = true},
    {.collective = scatter, .name = "scatter", .rooted = true, .by_block = true},
    {.collective = all_to_all,
     .name = "all_to_all",
     .by_block = true,
     .by_pair = true,
     .words = "alltoall",
     .msccl = "alltoall"},
    {.collective = all_to_all_v,
     .name = "all_to_all_v",
     .by_block = true,
     .uneven = true,
     .by_pair = true,
     .may_alias = false,
     .words = "alltoallv all_to_allv"},
    {.collective = all_gather_v,
     .name = "all_gather_v",
     .by_block = true,
     .uneven = true,
     .words = "allgv all_gatherv"},
    {.collective = reduce_scatter_v,
     .name = "reduce_scatter_v",
     .reduces = true,
     .by_block = true,
     .uneven = true,
     .words = "reduce_scatterv"},
    {.collective = permute, .name = "permute"},
    {.collective = send_recv, .name = "send_recv", .may_alias = false},
    {.collective = barrier, .name = "barrier"},
}};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

std::span<const CollectiveTraits> all_traits() { return table; }
const CollectiveTraits& traits(Collective c) { return table.at(static_cast<std::size_t>(c)); }

double bus_factor(Collective c, Rank ranks) {
  const double n = ranks;
  if (c == all_reduce) return 2 * (n - 1) / n;
  return traits(c).by_block ? (n - 1) / n : 1;
}

const CollectiveTraits* traits_by_word(std::string_view word) {
  const auto found = std::ranges::find_if(table, [&](const CollectiveTraits& t) { return has_word(t.words, word); });
  return found == table.end() ? nullptr : &*found;
}

// MSCCL's own tools use the name "reduce_scatter", too.
const CollectiveTraits* traits_by_msccl(std::string_view name) {
  const auto found = std::ranges::find_if(table, [&](const CollectiveTraits& t) {
    return !t.msccl.empty() && (t.msccl == name || (t.collective == reduce_scatter && t.name == name));
  });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace trellis::schedule
