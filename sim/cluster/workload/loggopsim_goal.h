// Programs in GOAL, the language of LogGOPSim's schedules: for each rank computations, sends and receives, and what
// each waits for. They are priced on any machine, or by LogGOPS parameters alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/workload/workload.h"

namespace trellis::sim {

struct GoalOperation {
  enum class Kind : std::uint8_t { compute, send, receive } kind = Kind::compute;
  std::int64_t amount = 0;                // nanoseconds of computation, or bytes
  std::int64_t peer = -1, tag = 0;        // the other rank; of a receive -1: any
  std::uint32_t cpu = 0, nic = 0;         // of the rank
  std::vector<std::uint32_t> after = {};  // of the same rank: what must have ended
  std::vector<std::uint32_t> with = {};   // of the same rank: what must have begun
  std::size_t line = 0;
};

struct GoalProgram {
  std::string name;
  std::vector<std::vector<GoalOperation>> ranks;
};

bool is_goal(std::string_view text);  // its first word is num_ranks, but for comments

// As txt2bin of LogGOPSim reads it:
//   num_ranks 2
//   rank 0 {
//     l1: calc 1000 cpu 1                  nanoseconds
//     l2: send 4096b to 1 tag 7 nic 0
//     l2 requires l1                       l1 must have ended; irequires: begun
//   }
// with comments as in C++. Throws invalid_argument with the line, its fault and what was expected.
GoalProgram read_goal(std::string_view name, std::string_view text);

// For any machine: a message leaves when its sender reaches it, and messages between two ranks with one tag are matched
// in order. An operation that begins with another one waits for what that one waits for. Throws invalid_argument for
// receives from any rank or with any tag, which only a run by LogGOPS can match, for sends and receives without a
// counterpart, and for operations that wait for themselves.
ExecutionGraph goal_graph(const GoalProgram&);

// Nanoseconds; G and O for each byte after the first; S: the eager limit, the bytes up to which a message does not wait
// for its receiver.
struct LogGops {
  double L = 2500, o = 1500, g = 1000, G = 6, O = 0, S = 65535;
};

// "loggp:L=2500,o=1500,g=1000,G=6,O=0,S=65535", with these as the usual values; none: it is the name of something else.
std::optional<LogGops> loggops_named(std::string_view);

// When each rank's CPUs are done, in nanoseconds, by the rules of LogGOPSim: a send takes a CPU for o + (n-1)O and its
// interface for g + (n-1)G; the first byte arrives after o + L; a message takes its receiver's CPU for o + max((n-1)O,
// (n-1)G). Throws invalid_argument for messages and receives that are left over.
std::vector<double> play_goal(const GoalProgram&, const LogGops&);

}  // namespace trellis::sim
