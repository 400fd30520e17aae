#include "schedule/proof/check_steps.h"

#include <optional>

#include <fmt/format.h>

namespace trellis::schedule {
namespace {

class StepRules {
 public:
  StepRules(const Task& task, int channels, Rank rank, const Program& program)
      : channels_(channels),
        rank_(rank),
        program_(program),
        cells_(cells(task, rank)),
        inputs_(input_chunks(task, rank)),
        outputs_(output_chunks(task, rank)),
        kinds_(task, rank, program) {}

  std::optional<Fault> check(std::int64_t index) const {
    const Step& step = program_.steps[index];
    std::optional<Fault> fault;
    const auto complain = [&](std::int64_t chunk, const std::string& why) {
      if (!fault) fault = Fault{rank_, index, chunk, fmt::format("{} {}", where(rank_, program_, index), why)};
    };
    if (static_cast<int>(step.op) >= op_count) complain(-1, "is of no kind that there is");
    if (step.channel >= channels_) complain(-1, fmt::format("is on channel {} of {}", step.channel, channels_));
    if (step.op != Op::reduce && program_.further(step).size() > (step.op == Op::copy ? 1 : 0))
      complain(-1, "names more places than its kind of step can have");
    if (step.op == Op::reduce && program_.further(step).empty()) complain(-1, "adds up one place only");
    each_slice(program_, step, [&](const Slice& x, bool written) {
      if (x.buffer > Buffer::scratch) return complain(x.first, "names a buffer that no rank has");
      if (const std::int64_t size = chunks(x.buffer);
          x.count < 1 || x.first < 0 || std::int64_t{x.first} + x.count > size)
        return complain(x.first, fmt::format("names {} from {}[{}], of which this rank has {}", x.count, name(x.buffer),
                                             x.first, size));
      if (written && x.buffer == Buffer::input) return complain(x.first, "writes to the caller's input");
    });
    if (!fault && names_too_much(step)) complain(-1, "names a place or an end that its kind of step has no use for");
    if (fault || step.op == Op::recv) return fault;
    each_slice(program_, step, [&](const Slice& x, bool written) {
      if (fault || x == step.from) return;
      compare(step.from, x, written, complain);
    });
    for (const Slice& more : program_.further(step)) {
      if (fault) break;
      if (step.op == Op::reduce)
        compare(more, step.to, true, complain);
      else if (overlap(step.to, more))
        complain(more.first, "writes to one place twice");
    }
    return fault;
  }

 private:
  static bool names_too_much(const Step& step) {
    if (!writes(step.op) && step.to != Slice{}) return true;
    if (!reads(step.op) && step.from != Slice{}) return true;
    if (!sends(step.op) && step.second != End{}) return true;
    return !sends(step.op) && !receives(step.op) && step.end != End{};
  }

  std::int64_t chunks(Buffer buffer) const {
    if (buffer == Buffer::input) return inputs_;
    return buffer == Buffer::output ? outputs_ : program_.scratch;
  }

  bool overlap(const Slice& a, const Slice& b) const {
    const std::int64_t x = cells_.at(a.buffer, a.first), y = cells_.at(b.buffer, b.first);
    return x < y + b.count && y < x + a.count;
  }

  // Slices of one step must have equal counts and kinds. A written slice must equal or not touch the others.
  template <class Complain>
  void compare(const Slice& a, const Slice& b, bool written, Complain complain) const {
    if (a.count != b.count) return complain(b.first, fmt::format("joins {} chunks with {}", a.count, b.count));
    if (written && cells_.at(a.buffer, a.first) != cells_.at(b.buffer, b.first) && overlap(a, b))
      return complain(b.first, "overlaps its own chunks half-way");
    for (std::int32_t i = 0; i < a.count; ++i)
      if (kinds_.of(a.buffer, std::int64_t{a.first} + i) != kinds_.of(b.buffer, std::int64_t{b.first} + i))
        return complain(b.first + i, fmt::format("joins {}[{}] with {}[{}], whose sizes can differ", name(a.buffer),
                                                 a.first + i, name(b.buffer), b.first + i));
  }

  int channels_;
  Rank rank_;
  const Program& program_;
  Cells cells_;
  std::int64_t inputs_, outputs_;
  Kinds kinds_;
};

// scratch_sizes must cover the scratch exactly.
std::optional<Fault> find_wrong_room(const Task& task, Rank rank, const Program& program) {
  if (task.even && program.scratch_sizes.empty() && program.scratch >= 0) return {};
  const auto complain = [&](const std::string& why) {
    return Fault{rank, -1, -1, fmt::format("rank {}: {}", rank, why)};
  };
  std::int64_t count = 0;
  for (const ScratchSize& size : program.scratch_sizes) {
    if (size.count < 1 || size.like < 0 || std::int64_t{size.like} + size.count > data_chunks(task))
      return complain(
          fmt::format("{} scratch chunks like data chunk {}, of {}", size.count, size.like, data_chunks(task)));
    count += size.count;
  }
  if (count == program.scratch) return {};
  return complain(fmt::format("it has {} scratch chunks, of which {} are described", program.scratch, count));
}

}  // namespace

std::optional<Fault> find_misfit(const Task& task, int channels, Rank rank, const Program& program) {
  if (auto fault = find_wrong_room(task, rank, program)) return fault;
  const StepRules rules(task, channels, rank, program);
  const auto count = static_cast<std::int64_t>(program.steps.size());
  for (std::int64_t i = 0; i < count; ++i)
    if (auto fault = rules.check(i)) return fault;
  return {};
}

std::optional<Fault> find_unequal_ends(const Schedule& s, const StepWiring& wiring) {
  std::vector<Kinds> kinds;
  for (Rank r = 0; r < s.ranks(); ++r) kinds.emplace_back(s.task, r, s.programs[r]);
  for (Rank r = 0; r < s.ranks(); ++r) {
    const auto& steps = s.programs[r].steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!receives(steps[i].op)) continue;
      const StepId other = wiring.partner(wiring.id(r, static_cast<std::int64_t>(i)));
      const Rank from = wiring.rank(other);
      const Slice& sent = s.programs[from].steps[wiring.step(other)].from;
      const Slice& got = steps[i].to;
      const auto complain = [&](std::int64_t chunk, const std::string& why) {
        return Fault{r, static_cast<std::int64_t>(i), chunk,
                     fmt::format("{} {} from {}", where(s, r, static_cast<std::int64_t>(i)), why,
                                 where(s, from, wiring.step(other)))};
      };
      if (sent.count != got.count)
        return complain(got.first, fmt::format("has room for {} chunks and gets {}", got.count, sent.count));
      for (std::int32_t k = 0; k < got.count; ++k)
        if (kinds[r].of(got.buffer, std::int64_t{got.first} + k) !=
            kinds[from].of(sent.buffer, std::int64_t{sent.first} + k))
          return complain(got.first + k, fmt::format("has {}[{}] for {}[{}], whose size can differ,", name(got.buffer),
                                                     got.first + k, name(sent.buffer), sent.first + k));
    }
  }
  return {};
}

}  // namespace trellis::schedule
