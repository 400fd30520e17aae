// Each collective as a condition: what every chunk holds before, and what it must hold after. A buffer is cut into
// blocks (one, or one for each rank) and each block into `pieces` chunks; a chunk is what a schedule moves.
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
Collective collective_named(std::string_view);  // throws invalid_argument, naming the known ones

struct Pair {
  Rank source = 0;
  Rank target = 0;
  bool operator==(const Pair&) const = default;
};

// All that a collective's conditions depend on.
struct Task {
  Collective collective = Collective::all_reduce;
  Rank ranks = 1;
  Rank root = 0;                 // broadcast, reduce, gather, scatter; the sender of send_recv
  Rank peer = 0;                 // the receiver of send_recv
  std::vector<Pair> pairs = {};  // permute: who sends to whom
  bool in_place = false;         // input and output share memory, as NCCL defines it for each collective
  bool even = false;             // the caller's count must divide into chunks of one size
  std::int32_t pieces = 1;       // chunks in a block
  bool operator==(const Task&) const = default;
};

void check(const Task&);  // throws invalid_argument with the value at fault

bool reduces(Collective);       // adds contributions up
bool rooted(Collective);        // has a root
bool by_block(Collective);      // its larger buffer has one block for each rank
bool uneven(Collective);        // blocks have sizes of their own: the _v forms
bool carries_data(Collective);  // all but a barrier, which has no bytes

std::int64_t data_chunks(const Task&);  // chunks in the larger buffer
std::int64_t input_chunks(const Task&, Rank);
std::int64_t output_chunks(const Task&, Rank);

enum class Buffer : std::uint8_t { input, output, scratch };

// Chunks whose kinds are equal have equal sizes. A data chunk is one of the larger buffer; where input and output are
// equally large but cut differently (all_to_all_v), it is one of the output.
std::int64_t kind_of_data(const Task&, Rank, std::int64_t chunk);
std::int64_t kind_of_input(const Task&, Rank, std::int64_t chunk);
std::int64_t kind_of_output(const Task&, Rank, std::int64_t chunk);

// What an output chunk must hold at the end.
struct Wanted {
  enum class Form : std::uint8_t { anything, copy, sum, all_arrived } form = Form::anything;
  Rank source = 0;         // copy: whose input
  std::int64_t chunk = 0;  // copy, sum, all_arrived: which input chunk, of the source or of every rank
};
Wanted wanted(const Task&, Rank, std::int64_t output_chunk);

// Where a rank's chunks lie when its memory is numbered through. In place, input and output overlap.
struct Cells {
  std::int64_t input = 0;    // of input chunk 0
  std::int64_t output = 0;   // of output chunk 0
  std::int64_t scratch = 0;  // of scratch chunk 0: the number of cells before it
  std::int64_t at(Buffer, std::int64_t chunk) const;
};
Cells cells(const Task&, Rank);

}  // namespace trellis::schedule
