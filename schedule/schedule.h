// The Schedule value: every rank's steps (send, receive, copy, reduce) over chunks, in order. No bytes, time or links.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule {

enum class Op : std::uint8_t {
  send,         // `from` goes to `end`; with `second` set, one read is written to both destinations
  recv,         // to = the data received
  recv_reduce,  // to = from + the data received
  copy,         // to = from; `further` may name a second destination for the same read
  reduce,       // to = from + the `further` slices, in that order, in one pass with one rounding
};
inline constexpr int op_count = 5;
inline constexpr int most_channels = 256;  // per schedule

// A run of consecutive chunks in one buffer of the program's own rank.
struct Slice {
  std::int32_t first = 0;
  std::int32_t count = 0;
  Buffer buffer = Buffer::input;
  bool operator==(const Slice&) const = default;
};

// One end of a transfer: the peer, and the transfer's number (from 0) among the transfers from that sender to that
// receiver on the step's channel.
struct End {
  Rank peer = -1;
  std::int32_t tag = -1;
  bool operator==(const End&) const = default;
};

// A range of elements in one of the Program's lists.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// One step of one rank. It may start once every step in `after` has finished.
struct Step {
  Op op = Op::copy;
  std::uint8_t channel = 0;
  Slice to = {};       // written by every op except send
  Slice from = {};     // read by every op except recv
  End end = {};        // the other end: send, recv, recv_reduce
  End second = {};     // send: a second destination for the same read, if any
  Range after = {};    // earlier steps of this program; read it with Program::after
  Range further = {};  // reduce: more sources; copy: a second destination; read it with Program::further
};

constexpr bool sends(Op op) { return op == Op::send; }
constexpr bool receives(Op op) { return op == Op::recv || op == Op::recv_reduce; }
constexpr bool reads(Op op) { return op != Op::recv; }
constexpr bool writes(Op op) { return op != Op::send; }

// `count` adjacent scratch chunks, as large as the data chunks `like`, `like` + 1, ...
struct ScratchSize {
  std::int32_t count = 0;
  std::int32_t like = 0;
  bool operator==(const ScratchSize&) const = default;
};

struct Program {
  std::vector<Step> steps = {};
  std::vector<std::int32_t> befores = {};       // storage for the steps' `after` ranges
  std::vector<Slice> slices = {};               // storage for the steps' `further` ranges
  std::int32_t scratch = 0;                     // number of scratch chunks
  std::vector<ScratchSize> scratch_sizes = {};  // in order; may be empty if all chunks are equal (Task::even)

  std::span<const std::int32_t> after(const Step& s) const { return {befores.data() + s.after.first, s.after.count}; }
  std::span<const Slice> further(const Step& s) const { return {slices.data() + s.further.first, s.further.count}; }
  void set_after(Step&, std::span<const std::int32_t>);
  void set_further(Step&, std::span<const Slice>);
};

bool same(const Program&, const Program&);  // same steps in the same order; the storage of the lists may differ

struct Schedule {
  Task task;
  std::string algorithm;
  std::int32_t channels = 1;
  std::vector<Program> programs;  // indexed by rank

  Rank ranks() const { return task.ranks; }
  std::int64_t steps() const;
};

// Chunks of one kind have equal sizes, whatever the caller's counts are. Transfers, copies and sums join only chunks of
// one kind.
class Kinds {
 public:
  Kinds(const Task&, Rank, const Program&);
  std::int64_t of(Buffer, std::int64_t chunk) const;

 private:
  const Task& task_;
  Rank rank_;
  std::vector<std::pair<std::int64_t, std::int32_t>> rooms_;  // first scratch chunk of each run, and its `like`
};

std::string_view name(Op);
std::string_view name(Buffer);

// Calls visit(slice, written) for every slice that a step reads or writes; reads come first.
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
