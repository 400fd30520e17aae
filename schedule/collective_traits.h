// The table of traits of collectives, which everything else reads. A new collective is a row here, its conditions in
// collective.cpp, its algorithms, and its entry in the C API.
#pragma once
#include <span>
#include <string_view>

#include "schedule/collective.h"

namespace trellis::schedule {

struct CollectiveTraits {
  Collective collective;
  std::string_view name;
  bool reduces = false, rooted = false;
  bool by_block = false;   // the larger buffer has one block per rank
  bool uneven = false;     // block sizes may differ
  bool by_pair = false;    // each block goes from one rank to one other; uneven ones have a size for each pair
  bool may_alias = true;   // input and output may share memory
  std::string_view words;  // further names in benchmarks: "allr", "alltoall"
  std::string_view msccl;  // name in files of MSCCL and MSCCL++; empty: these can't express it
};

std::span<const CollectiveTraits> all_traits();
const CollectiveTraits& traits(Collective);

// The all_to_all whose block sizes differ for each pair of ranks.
inline bool counts_by_pair(Collective c) { return traits(c).by_pair && traits(c).uneven; }

double bus_factor(Collective, Rank ranks);  // bus bandwidth over bandwidth, as benchmarks define it

// By a further name of benchmarks, or by the name in MSCCL's files. Null: there is none.
const CollectiveTraits* traits_by_word(std::string_view word);
const CollectiveTraits* traits_by_msccl(std::string_view name);

}  // namespace trellis::schedule
