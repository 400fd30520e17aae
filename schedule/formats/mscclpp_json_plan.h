// The contents of an MSCCL++ execution plan as plain structs, and their reader.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule::mscclpp {

enum class PlanOperationKind : std::uint8_t {
  nop,
  barrier,
  signal,
  wait,
  relaxed_signal,
  relaxed_wait,
  release,
  acquire,
  copy,    // local to local
  put,     // local to remote
  get,     // remote to local
  reduce,  // local data, then local or remote data, summed to local, and from there to remote
};

constexpr bool moves(PlanOperationKind k) { return k >= PlanOperationKind::copy; }

// A run of chunks of this gpu or, in puts, gets and reductions, of another gpu.
struct PlanChunkRange {
  Rank rank = 0;
  Buffer buffer = Buffer::input;
  std::int32_t first = 0;
  std::int32_t count = 0;
};

struct PlanOperation {
  PlanOperationKind kind = PlanOperationKind::nop;
  std::vector<PlanChunkRange> sources, targets;  // all have the same length
  std::vector<std::int32_t> ids;                 // this gpu's channels to signal or wait on; semaphores; the barrier
  std::int32_t blocks = 0;                       // number that meet at the barrier
};

struct PlanThreadBlock {
  std::vector<PlanOperation> operations;
};

struct PlanGpu {
  std::int32_t inputs = 0, outputs = 0, scratch = 0;  // in chunks
  std::vector<Rank> channels;                         // the peer of each
  std::vector<std::int32_t> semaphores;               // initial value of each
  std::vector<PlanThreadBlock> blocks;
};

struct ExecutionPlan {
  std::string name, collective;
  bool in_place = false;
  std::vector<PlanGpu> gpus;  // by rank
};

ExecutionPlan read(std::string_view json);  // throws invalid_argument with the place
std::string place(Rank, std::size_t block, std::size_t operation);

}  // namespace trellis::schedule::mscclpp
