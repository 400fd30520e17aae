// Reads Chakra execution traces (length-delimited protobuf messages, schema 0.0.4) as a graph: one file for each rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/workload/workload.h"

namespace trellis::sim {

struct ChakraNode {
  enum class Type : std::uint8_t { invalid, metadata, load, store, compute, send, receive, collective };
  std::uint64_t id = 0;
  std::string name;
  Type type = Type::invalid;
  std::uint64_t offset = 0;          // of its message in the file
  std::vector<std::uint64_t> after;  // ids of control and data dependencies
  std::uint64_t micros = 0;          // duration
  std::uint64_t nanos = 0;           // added to `micros`, by traces that are finer
  // Attributes; missing ones keep these values.
  bool on_host = false;                                 // is_cpu_op
  std::int64_t comm_type = -1, comm_size = 0, tag = 0;  // comm_type, comm_size, comm_tag
  std::int64_t source = -1, target = -1, root = 0;      // comm_src, comm_dst, root_rank
  std::int64_t operations = 0, tensor_bytes = 0;        // num_ops, tensor_size
  std::string group = {};                               // pg_name
  std::string stream = {};                              // of computation; empty: by on_host
};

struct ChakraFile {
  std::string name;  // for error messages
  std::string_view bytes;
  std::string_view place = "byte";  // what a node's offset counts, for error messages
};

// Throws invalid_argument with the file, the byte and what was expected there.
std::vector<ChakraNode> read_chakra_nodes(const ChakraFile&);

// The nth file is that of rank n. The collectives of one process group (or of all ranks if none is named) are matched
// in the order in which each rank reaches them; sends and receives by sender, receiver and tag. A message leaves when
// its sender reaches it, whether or not it is awaited. Computation takes its duration, or num_ops and tensor_size at
// the machine's rates. A rank computes one thing at a time, in the order in which things become ready. comm_size is a
// rank's input, as in ASTRA-sim: the larger buffer of all_gather and gather has one for each rank. Throws
// invalid_argument with the file and the node's byte.
ExecutionGraph read_chakra(std::string_view name, std::span<const ChakraFile>);

// Likewise, where many ranks do the same: traces that differ only in the names of groups and the other ends of messages
// are stored once, for a class of ranks. `bytes` reads the file of a rank. None where nothing is gained, or where a
// trace has a fault: read_chakra reports it.
std::optional<ExecutionGraph> read_alike_chakra(std::string_view name, std::span<const std::string> names,
                                                const std::function<std::string(std::size_t)>& bytes);

// Likewise for nodes that were read from another format: a list for each rank, with the name of its file.
ExecutionGraph graph_of_traces(std::string_view name, std::span<const ChakraFile>,
                               std::vector<std::vector<ChakraNode>>);

}  // namespace trellis::sim
