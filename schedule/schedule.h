// A Schedule says, for every rank, which chunks move where and in which order; nothing of bytes, clocks or wires.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule {

enum class Op : std::uint8_t {
  send,         // `from` goes to `end`; with a second end, one read is written to two places
  recv,         // to = what arrives
  recv_reduce,  // to = from + what arrives
  copy,         // to = from; with a further slice, one read is written there too
  reduce,       // to = from + further slices, in that order, in one pass with one rounding
};
inline constexpr int op_count = 5;
inline constexpr int most_channels = 256;  // of a schedule

// A run of chunks in one buffer of the rank whose program names it.
struct Slice {
  std::int32_t first = 0;
  std::int32_t count = 0;
  Buffer buffer = Buffer::input;
  bool operator==(const Slice&) const = default;
};

// A transfer, as one end names it: who is at the other, and its number, from 0, among those from sender to receiver on
// the step's channel.
struct End {
  Rank peer = -1;
  std::int32_t tag = -1;
  bool operator==(const End&) const = default;
};

// A part of one of its Program's lists.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// One step of one rank. It may start once every step in its `after` has finished.
struct Step {
  Op op = Op::copy;
  std::uint8_t channel = 0;
  Slice to = {};       // written by all but send
  Slice from = {};     // read by all but recv
  End end = {};        // send, recv, recv_reduce
  End second = {};     // send: the other place that the one read is written to, if any
  Range after = {};    // earlier steps of this program: use Program::after
  Range further = {};  // reduce: more sources; copy: a second destination: use Program::further
};

constexpr bool sends(Op op) { return op == Op::send; }
constexpr bool receives(Op op) { return op == Op::recv || op == Op::recv_reduce; }
constexpr bool reads(Op op) { return op != Op::recv; }
constexpr bool writes(Op op) { return op != Op::send; }

// Scratch chunks side by side that are as large as the data chunks `like`, `like` + 1, ...
struct Room {
  std::int32_t count = 0;
  std::int32_t like = 0;
  bool operator==(const Room&) const = default;
};

struct Program {
  std::vector<Step> steps = {};
  std::vector<std::int32_t> befores = {};  // what the steps' `after` ranges point into
  std::vector<Slice> slices = {};          // what the steps' `further` ranges point into
  std::int32_t scratch = 0;                // scratch chunks it needs
  std::vector<Room> rooms = {};  // how large these are, in order; may be empty when all chunks are (Task::even)

  std::span<const std::int32_t> after(const Step& s) const { return {befores.data() + s.after.first, s.after.count}; }
  std::span<const Slice> further(const Step& s) const { return {slices.data() + s.further.first, s.further.count}; }
  void set_after(Step&, std::span<const std::int32_t>);
  void set_further(Step&, std::span<const Slice>);
};

bool same(const Program&, const Program&);  // the same steps in the same order, however their lists are laid out

struct Schedule {
  Task task;
  std::string algorithm;
  std::int32_t channels = 1;
  std::vector<Program> programs;  // one for each rank

  Rank ranks() const { return task.ranks; }
  std::int64_t steps() const;
};

// Chunks whose kinds are equal have equal sizes, whatever the caller's counts: a transfer, a copy and a sum join chunks
// of one kind only.
class Kinds {
 public:
  Kinds(const Task&, Rank, const Program&);
  std::int64_t of(Buffer, std::int64_t chunk) const;

 private:
  const Task& task_;
  Rank rank_;
  std::vector<std::pair<std::int64_t, std::int32_t>> rooms_;  // where each begins, and what it is like
};

std::string_view name(Op);
std::string_view name(Buffer);

// Calls visit(slice, written) for every slice that a step touches, reads first.
template <class Visit>
void each_slice(const Program& program, const Step& step, Visit visit) {
  if (reads(step.op)) visit(step.from, false);
  if (step.op == Op::reduce)
    for (const Slice& source : program.further(step)) visit(source, false);
  if (writes(step.op)) visit(step.to, true);
  if (step.op == Op::copy)
    for (const Slice& target : program.further(step)) visit(target, true);
}

}  // namespace trellis::schedule
