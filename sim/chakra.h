// Chakra execution traces (protobuf messages, each after its length; schema 0.0.4) as a workload: one file a rank.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload.h"

namespace trellis::sim {

struct ChakraNode {
  enum class Type : std::uint8_t { invalid, metadata, load, store, compute, send, receive, collective };
  std::uint64_t id = 0;
  std::string name;
  Type type = Type::invalid;
  std::uint64_t offset = 0;          // of its message in the file
  std::vector<std::uint64_t> after;  // ids, of control and of data
  std::uint64_t micros = 0;          // duration
  // Attributes; those that are not there keep these values.
  bool on_host = false;                                 // is_cpu_op
  std::int64_t comm_type = -1, comm_size = 0, tag = 0;  // comm_type, comm_size, comm_tag
  std::int64_t source = -1, target = -1, root = 0;      // comm_src, comm_dst, root_rank
  std::int64_t operations = 0, tensor_bytes = 0;        // num_ops, tensor_size
  std::string group = {};                               // pg_name
};

struct ChakraFile {
  std::string name;  // for messages
  std::string_view bytes;
};

// Throws invalid_argument, naming the file, the byte and what was expected there.
std::vector<ChakraNode> read_chakra_nodes(const ChakraFile&);

// The nth file is rank n's. Collectives of one process group (or of all ranks, where none is named) belong together in
// the order in which each rank comes to them, sends and receives by ends and tag; a message leaves
// when its sender has come to it, whether or not it is awaited. Computation takes its duration, or
// num_ops and tensor_size at the machine's rates; a rank computes one thing at a time, in the order in which things
// become ready. comm_size is a rank's input, as ASTRA-sim has it: of all_gather and gather the larger buffer has one
// for each rank. Throws invalid_argument, naming the file and the node's byte.
Workload read_chakra(std::string_view name, std::span<const ChakraFile>);

}  // namespace trellis::sim
