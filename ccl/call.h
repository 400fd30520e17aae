// What a caller asks of a communicator, in the general form of all collectives.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/reduce/reduce.h"
#include "kernels/types/dtype.h"
#include "schedule/collective.h"

namespace trellis::device {
class Stream;  // on which a call runs
}

namespace trellis::ccl {

using schedule::Collective;
using schedule::Rank;

// avg divides the sum by the number of ranks. scaled_sum multiplies this rank's contribution by the factor first.
struct ReduceOp {
  kernels::Reduction kind = kernels::Reduction::sum;
  double factor = 1;
};

// count is as in NCCL: the whole buffer for all_reduce, broadcast, reduce, send_recv and permute; one rank's block for
// the others.
struct Call {
  schedule::CollectiveOperation operation = {};  // its in_place is ignored: the buffers' addresses decide
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  kernels::DType type = kernels::DType::f32;
  ReduceOp op = {};
  std::vector<std::size_t> counts = {};           // all_gather_v, reduce_scatter_v: by rank; all_to_all_v: to each rank
  std::vector<std::size_t> arriving_counts = {};  // all_to_all_v: from each rank
};

inline schedule::CollectiveOperation operation_of(const Call& c, bool in_place) {
  schedule::CollectiveOperation operation = c.operation;
  operation.in_place = in_place;
  return operation;
}

// Throws invalid_argument unless whole == block * ranks: the larger buffer holds one block for each rank.
void expect_blocks(Collective, std::string_view larger, std::size_t whole, std::size_t block, Rank ranks);
// The elements of one rank's block in a buffer of `whole` elements. Throws invalid_argument unless ranks divide it.
std::size_t block_of(Collective, std::size_t whole, Rank ranks);
void expect_as_many(Collective, std::size_t in, std::size_t out);  // throws invalid_argument
// Throws invalid_argument unless there is one count for each rank and their sum is `elements`.
void expect_counts(Collective, std::string_view buffer, std::span<const std::size_t>, std::size_t elements, Rank ranks);

// Checks the counts against the larger buffer as expect_counts does, and that the smaller one has this rank's count.
void expect_own(Collective, std::span<const std::size_t> counts, Rank rank, std::size_t smaller, std::size_t larger,
                Rank ranks);

}  // namespace trellis::ccl
