// What ranks of a step exchange: a collective along an axis, or a message of the pipeline.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/reduce/reduce.h"
#include "train/mesh/mesh.h"

namespace trellis::train {

using kernels::DType;
using TensorId = std::int32_t;
inline constexpr TensorId no_tensor = -1;

// Where the communicated elements of a tensor begin: at element `first`.
struct Part {
  TensorId tensor = no_tensor;
  std::size_t first = 0;
};

// One call of a collective; count as in ccl::Call.
struct Transfer {
  Part from, to;
  std::size_t count = 0;
  DType type = DType::f32;
};

// Rows that one side of an all_to_all_v sends or receives, in Exchange::blocks blocks for each rank of the group.
// `rows`: i32, the number of rows of each block, by rank and then by block.
struct UnevenBlocks {
  TensorId rows = no_tensor;
  bool by_block = false;  // in memory: all ranks' first blocks, then all second ones; else a rank's blocks together
};

struct Exchange {
  enum class Kind : std::uint8_t {
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    all_to_all_v,
    shift,  // each rank's elements go to the next one of the group, the last one's to the first
    send,
    receive
  } kind = Kind::all_reduce;
  Axis axis = Axis::tensor;
  kernels::Reduction reduction = kernels::Reduction::sum;
  double factor = 1;  // of scaled_sum
  Rank peer = 0;      // of send and receive: the other rank's place in the group
  int label = 0;      // of send and receive: sender and receiver must give the same
  std::vector<Transfer> transfers;
  // For all_to_all_v, whose sizes are known only when it runs. A transfer's count is the most that goes to one rank.
  UnevenBlocks sent = {}, received = {};
  std::size_t blocks = 1;  // blocks for each rank
  double expected = 0;     // elements to each rank that prices assume
};
std::string_view name(Exchange::Kind);

}  // namespace trellis::train
