// A flight recorder's dump, as far as it tells where a rank is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trellis::tools {

struct RankDump {
  std::string communicator;  // which one; empty: not told
  int rank = 0;
  int ranks = 1;
  std::int64_t written_ns = 0;  // since 1970; 0: not told
  std::string error;            // what ended the communicator; empty: nothing has
  int waits_for = -1;
  int step = -1;

  // The last operation.
  std::uint64_t operation = 0;  // as ranks count collectives; of sends and receives: the collectives before them
  bool points = false;          // it is of these
  bool under_way = false;
  std::string call = {};  // "all_reduce of 1024 f32, sum"; empty: there was no operation
};

// Throws invalid_argument with what is wrong.
RankDump rank_dump_in(std::string_view json);

}  // namespace trellis::tools
