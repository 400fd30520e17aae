// Defines each collective by its conditions: what every chunk holds before and must hold after. A buffer has one block,
// or one block per rank. A block is cut into `pieces` chunks. A chunk is the unit that schedules move.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::schedule {

using Rank = std::int32_t;

enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  all_to_all_v,
  all_gather_v,
  reduce_scatter_v,
  permute,
  send_recv,
  barrier
};

std::span<const Collective> collectives();
std::string_view name(Collective);
Collective collective_named(std::string_view);  // throws invalid_argument that lists the known names

struct Pair {
  Rank source = 0;
  Rank target = 0;
  bool operator==(const Pair&) const = default;
};

// What ranks are asked to do together, however many they are and however it is done.
struct CollectiveOperation {
  Collective collective = Collective::all_reduce;
  Rank root = 0;                 // for broadcast, reduce, gather, scatter; the sender of send_recv
  Rank peer = 0;                 // the receiver of send_recv
  std::vector<Pair> pairs = {};  // permute: who sends to whom
  bool in_place = false;         // input and output share memory, as NCCL defines it for each collective
  bool operator==(const CollectiveOperation&) const = default;
};

// Everything that the conditions of a collective depend on.
struct Task {
  CollectiveOperation operation;
  Rank ranks = 1;
  bool even = false;        // the caller's count must divide into chunks of equal size
  std::int32_t pieces = 1;  // chunks per block
  bool operator==(const Task&) const = default;
};

void check(const Task&);  // throws invalid_argument that contains the bad value

bool reduces(Collective);       // sums contributions
bool rooted(Collective);        // has a root
bool by_block(Collective);      // the larger buffer has one block per rank
bool uneven(Collective);        // block sizes may differ: the _v forms
bool carries_data(Collective);  // false only for barrier, which has no bytes

std::int64_t data_chunks(const Task&);  // chunks in the larger buffer
std::int64_t input_chunks(const Task&, Rank);
std::int64_t output_chunks(const Task&, Rank);

enum class Buffer : std::uint8_t { input, output, scratch };

// Chunks of one kind have equal sizes. Data chunks are the chunks of the larger buffer. Where input and output are
// equally large but cut differently (all_to_all_v), they are the output's chunks.
std::int64_t kind_of_data(const Task&, Rank, std::int64_t chunk);
std::int64_t kind_of_input(const Task&, Rank, std::int64_t chunk);
std::int64_t kind_of_output(const Task&, Rank, std::int64_t chunk);

// What an output chunk must hold at the end.
struct Wanted {
  enum class Form : std::uint8_t { anything, copy, sum, all_arrived } form = Form::anything;
  Rank source = 0;         // copy: the rank whose input is copied
  std::int64_t chunk = 0;  // copy, sum, all_arrived: input chunk of the source, or of every rank
};
Wanted wanted(const Task&, Rank, std::int64_t output_chunk);

// Numbers all chunks of a rank's memory as cells. In place, the cells of input and output overlap.
struct Cells {
  std::int64_t input = 0;    // cell of input chunk 0
  std::int64_t output = 0;   // cell of output chunk 0
  std::int64_t scratch = 0;  // cell of scratch chunk 0, and the number of cells before it
  std::int64_t at(Buffer, std::int64_t chunk) const;
};
Cells cells(const Task&, Rank);

}  // namespace trellis::schedule
