// A training step as a value, or any other work that ranks do together: what each rank computes and exchanges, in which
// order, and what it holds meanwhile. It is checked (match_exchanges.h, peak_memory.h), written (graph_text.h), priced
// (sim/cluster/workload), run. Ranks that do the same work, each on its own part, form one class, which is listed once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective.h"
#include "schedule/graph/operation_shape.h"

namespace trellis::schedule {

// Disjoint groups of ranks. Each group does its collectives and messages by itself; its i-th member is rank i in them.
struct GraphCommunicator {
  std::string name;
  std::vector<std::vector<Rank>> groups = {};  // none: one group of all ranks
};

struct ElementType {
  std::string name;
  std::size_t bytes = 0;
};

// What memory is used for. Lasting tensors are kept from step to step, others live from the first task that names them
// to the last.
struct MemoryCategory {
  std::string name;
  bool lasting = false;
};

struct GraphTensor {
  std::string name;
  std::uint8_t type = 0;      // of ExecutionGraph::types
  std::uint8_t category = 0;  // of ExecutionGraph::categories
  std::size_t rows = 0, columns = 1;
};

// A number of elements that is exchanged.
struct ElementCount {
  std::uint64_t count = 0;
  std::uint8_t type = 0;  // of ExecutionGraph::types
  bool operator==(const ElementCount&) const = default;
};

// `count` operations of one shape, one after the other.
struct RepeatedOperation {
  std::uint32_t shape = 0;  // of ExecutionGraph::shapes
  std::uint32_t count = 1;
  bool operator==(const RepeatedOperation&) const = default;
};

struct GraphTask {
  enum class Kind : std::uint8_t { compute, collective, send, receive } kind = Kind::compute;
  std::string name;
  std::uint16_t stream = 0;  // of ExecutionGraph::streams
  std::uint32_t number = 0;  // among tasks that could come next, the lowest number goes first
  // Earlier tasks of the class that must end first, in addition to the one before it in its stream.
  std::vector<std::uint32_t> after = {};
  std::vector<std::uint32_t> reads = {}, writes = {};  // tensors of the class
  // A computation takes as long as the longest of: `time`, in picoseconds; its operations, whose times follow from
  // their shapes; and, if it has no operations, `flops` and `bytes` at the chip's rates.
  std::uint8_t phase = 0;  // of ExecutionGraph::phases, if there are any
  std::int64_t time = 0;
  std::vector<RepeatedOperation> work = {};
  double flops = 0;
  double bytes = 0;  // of the collective's larger buffer, of the message, or read and written by compute
  // For collectives, sends and receives:
  std::uint32_t communicator = 0;
  // Its ranks are numbers within the group. In a permute, each rank sends to the next one, and `pairs` is empty. In a
  // send or receive, `peer` is the other end.
  CollectiveOperation operation = {};
  std::string reduction = {};           // such as "sum"; all ends must have the same; empty: not given
  std::vector<ElementCount> amounts{};  // all ends must have the same
  int label = 0;                        // of send and receive: both ends must have the same
  std::string algorithm = {};           // empty: the best
};

struct GraphStream {
  std::string name;
  bool ordered = true;  // a rank does its tasks one after the other, as they are listed
};

struct RankClass {
  std::vector<Rank> ranks;  // ascending
  std::vector<GraphTensor> tensors = {};
  std::vector<GraphTask> tasks = {};
};

struct ExecutionGraph {
  std::string name;
  Rank ranks = 1;
  std::vector<ElementType> types = {};
  std::vector<MemoryCategory> categories = {};
  std::vector<GraphStream> streams = {};
  std::vector<OperationShape> shapes = {};  // of computations, each once
  std::vector<std::string> phases = {};     // what computations are for: forward, backward, ...
  std::vector<GraphCommunicator> communicators = {};
  std::vector<RankClass> classes = {};  // every rank is in one

  std::size_t bytes(const GraphTensor& t) const { return t.rows * t.columns * types[t.type].bytes; }
};

std::string described(const ExecutionGraph&,
                      const GraphTask&);  // "all_reduce on tensor by sum of 4096 f32", for messages

}  // namespace trellis::schedule
