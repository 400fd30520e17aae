// A schedule as the ranks of one host run it: the compiled programs with the two ends of each message joined. Ranks
// that symmetry makes alike are represented by one of them.
#pragma once

#include <optional>
#include <vector>

#include "ccl/call.h"
#include "ccl/plan/compiled_program.h"
#include "ccl/transports/rank_cores.h"
#include "schedule/algorithms/algorithm_config.h"

namespace trellis::ccl {

struct JoinedStep {
  schedule::Op op = schedule::Op::copy;
  bool from_scratch = false;  // sends from memory that peers can read
  bool made_here = false;     // sends what an earlier step has written
  bool far = false;           // a message from another socket
  std::uint32_t program = 0;
  std::uint32_t waits = 0;    // number of steps of its program that it waits for
  std::uint32_t follows = 0;  // index in JoinedPrograms::followers
  std::uint32_t follow_count = 0;
  std::uint32_t sources = 1;  // of a sum; of a copy, its destinations
  double bytes = 0;
  std::int32_t round = -1;  // of the message, in a program of all-to-all rounds; see ccl/plan/exchange_rounds.h
  std::vector<std::uint32_t> ends = {};  // the step at the other end: one, or the two receivers of a send
};

struct JoinedPrograms {
  std::vector<JoinedStep> steps = {};
  std::vector<std::uint32_t> followers = {};
  std::vector<std::size_t> lines = {};  // by program: lanes that it uses
  std::vector<double> published = {};   // by all-to-all round: the bytes of a rank's messages together
  std::size_t touched_bytes = 0;        // by the busiest rank
};

// None if the algorithm does not serve the call, or if more than `most_steps` would have to be joined. `hidden`: peers
// cannot read the call's buffers.
std::optional<JoinedPrograms> join_programs(const schedule::AlgorithmConfig&, const Call&, Rank ranks, const RankCores&,
                                            const TransportCapabilities&, bool hidden, std::size_t most_steps);

}  // namespace trellis::ccl
