// A schedule compiled for simulation: its moves, how many steps each move waits for, and what it releases. A move is a
// local step or a whole transfer, kept by its sender. Ranks of one class share one program.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "schedule/algorithms/algorithm.h"
#include "schedule/schedule.h"

namespace trellis::sim {

using schedule::Rank;

inline constexpr std::int32_t no_peer = -1;

struct Move {
  std::uint32_t waits = 0;                        // steps that must end first, on its rank and on receiving ranks
  std::uint32_t chunks = 0;                       // that it moves or writes
  std::int32_t peer = no_peer, second = no_peer;  // transfer: destinations, as indices into the class's peers
  std::uint32_t step = 0;                         // of the program
  std::uint32_t arrival = 0, second_arrival = 0;  // transfer: the receiving step, in the receiver's program
  std::uint32_t sources = 1;                      // how many inputs its result has: 1, or the terms of a sum
  std::uint32_t summed = 0;                       // transfer of a sum that is only sent on: how many sources it has
  std::uint8_t channel = 0;                       // transfer
  bool adds : 1 = false;                          // it sums what it reads
  bool copies_twice : 1 = false;                  // local: one read, two writes
  bool staged : 1 = false;                        // transfer: the data is only one source of one local sum
  bool forwards : 1 = false;                      // local sum: the result is only sent on
};

// A move that waits for the end of a step: the rank's own, or one of a peer that sends to it.
struct DependentMove {
  std::uint32_t move = 0;
  std::int32_t peer = no_peer;
};

struct RankClassProgram {
  Rank representative = 0;
  std::vector<Rank> peers;  // by their names as seen from the representative
  std::vector<Move> moves;
  std::vector<DependentMove> followers;
  std::vector<std::uint32_t> begin;  // where each step's followers begin, and one index past the end
};

struct CompilationStopped {};

class CompiledSchedule {
 public:
  using Stopped = std::function<bool()>;  // polled; true: the constructor throws CompilationStopped
  explicit CompiledSchedule(const schedule::Schedule&);
  // For blocks with fewer elements than chunks: the first `elements` chunks of each block have one, the others are
  // empty.
  CompiledSchedule(const schedule::Schedule&, std::int64_t elements, const Stopped& = {});
  // With the number of elements of each block, for the _v forms (all_to_all_v: block source * ranks + target).
  CompiledSchedule(const schedule::Schedule&, std::vector<std::int64_t> blocks);
  // Makes the program of a class of like ranks once.
  CompiledSchedule(const schedule::Algorithm&, const schedule::Request&, const Stopped& = {});

  const schedule::Task& task() const { return task_; }
  Rank ranks() const { return task_.ranks; }
  const schedule::Symmetry& symmetry() const { return symmetry_; }
  const std::vector<RankClassProgram>& classes() const { return classes_; }
  std::uint32_t class_of(Rank) const;
  Rank peer(Rank of, Rank as_named) const;                                  // a peer's name as seen from this rank
  std::int64_t moves() const;                                               // of all ranks
  bool sized() const { return elements_.has_value() || !blocks_.empty(); }  // chunks are counted in elements

 private:
  struct Lines;
  void compile(const std::vector<schedule::Program>&, const Stopped& = {});
  void add_moves(const schedule::Program&, RankClassProgram&, Lines&);
  void join(const schedule::Program&, RankClassProgram&, const std::vector<Lines>&);
  void add_followers(const schedule::Program&, RankClassProgram&, const std::vector<Lines>&);
  void find_streams(const schedule::Program&, RankClassProgram&, const std::vector<DependentMove>& by_step);
  std::int64_t elements_of(std::int64_t kind) const;
  std::uint32_t sized(const schedule::Program&, const schedule::Kinds&, const schedule::Slice&) const;

  schedule::Task task_;
  schedule::Symmetry symmetry_;
  std::vector<RankClassProgram> classes_;
  std::unordered_map<Rank, std::uint32_t> numbers_;  // of representatives
  std::optional<std::int64_t> elements_;
  std::vector<std::int64_t> blocks_;
};

// Every rank's program; throws CompilationStopped.
schedule::Schedule make_or_stop(const schedule::Algorithm&, const schedule::Request&, const CompiledSchedule::Stopped&);

}  // namespace trellis::sim
