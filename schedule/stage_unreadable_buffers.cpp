#include "schedule/stage_unreadable_buffers.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>

#include "schedule/in_place_slices.h"

namespace trellis::schedule {
namespace {

enum class Value : std::uint8_t {
  given,    // the original content
  passing,  // written, to be overwritten later
  last,     // the final value
};

// Tracks what the output's chunks hold as the steps are visited in list order, which is a valid execution order.
class Output {
 public:
  Output(const Task& task, Rank rank, const Program& program)
      : task_(task),
        rank_(rank),
        program_(program),
        writers_(static_cast<std::size_t>(output_chunks(task, rank)), none),
        last_(writers_) {
    for (std::size_t i = 0; i < program.steps.size(); ++i) pass(i);
    last_.swap(writers_);
  }

  // The slice in terms of the output buffer, if it lies there.
  std::optional<Slice> in(const Slice& s) const {
    const Slice named = as_output(task_, rank_, s);
    return named.buffer == Buffer::output && named.count > 0 ? std::optional(named) : std::nullopt;
  }

  // Visits one step's slices of the output as (slice, written). During reads, value() is the content before the step;
  // during writes, the content after it.
  template <class Visit>
  void pass(std::size_t step, Visit visit) {
    each_slice(program_, program_.steps[step], [&](const Slice& s, bool written) {
      const std::optional<Slice> slice = in(s);
      if (!slice) return;
      if (written)
        for (std::int32_t& writer : writers_of(*slice)) writer = static_cast<std::int32_t>(step);
      visit(*slice, written);
    });
  }
  void pass(std::size_t step) {
    pass(step, [](const Slice&, bool) {});
  }
  void rewind() { std::ranges::fill(writers_, none); }

  // State of a slice of the output; none if its chunks differ.
  std::optional<Value> value(const Slice& s) const {
    const Value first = value_at(static_cast<std::size_t>(s.first));
    for (std::int32_t c = s.first + 1; c < s.first + s.count; ++c)
      if (value_at(static_cast<std::size_t>(c)) != first) return std::nullopt;
    return first;
  }
  std::span<std::int32_t> writers_of(const Slice& s) {
    return std::span(writers_).subspan(static_cast<std::size_t>(s.first), static_cast<std::size_t>(s.count));
  }

 private:
  Value value_at(std::size_t chunk) const {
    if (writers_[chunk] == none) return Value::given;
    return writers_[chunk] == last_[chunk] ? Value::last : Value::passing;
  }

  static constexpr std::int32_t none = -1;
  const Task& task_;
  const Rank rank_;
  const Program& program_;
  std::vector<std::int32_t> writers_, last_;  // by chunk: the step that wrote it, so far and in the end
};

// Original data that is sent more than once.
struct Repeated {
  std::int32_t sends = 0;
  Slice copied = {};
  std::int32_t copy = -1;  // the step that copies it to scratch
};

struct BySlice {
  bool operator()(const Slice& a, const Slice& b) const {
    return std::tuple(a.buffer, a.first, a.count) < std::tuple(b.buffer, b.first, b.count);
  }
};

class Rewriter {
 public:
  Rewriter(const Task& task, Rank rank, const Program& program)
      : task_(task), rank_(rank), program_(program), output_(task, rank, program) {}

  StagedProgram done(UnreadableBuffers hidden) {
    if (!straddles_anywhere()) {
      moves_ = hidden.output && find_kept();
      find_repeated(hidden);
    }
    if (!moves_ && repeated_.empty()) {
      std::vector<std::int32_t> same(program_.steps.size());
      std::iota(same.begin(), same.end(), 0);
      return {program_, std::move(same)};
    }
    out_.program.scratch = program_.scratch;
    out_.program.scratch_sizes = program_.scratch_sizes;
    if (moves_) beside_ = room_for({0, static_cast<std::int32_t>(output_chunks(task_, rank_)), Buffer::output}).first;
    for (auto& [slice, repeated] : repeated_) repeated.copied = room_for(slice);
    output_.rewind();
    for (std::size_t i = 0; i < program_.steps.size(); ++i) rewrite(i);
    return std::move(out_);
  }

 private:
  const Step& step(std::size_t i) const { return program_.steps[i]; }

  bool straddles_anywhere() const {
    bool any = false;
    for (const Step& s : program_.steps)
      each_slice(program_, s, [&](const Slice& slice, bool) { any |= straddles(task_, rank_, slice); });
    return any;
  }

  // Finds the steps whose results are both sent and kept in the output. Returns false if no such result is sent, or if
  // a step would have to touch two buffers at once.
  bool find_kept() {
    bool plain = true, sent = false;
    kept_.assign(program_.steps.size(), false);
    const auto go_through = [&](auto visit) {
      output_.rewind();
      for (std::size_t i = 0; i < program_.steps.size(); ++i)
        output_.pass(i, [&](const Slice& s, bool written) {
          const std::optional<Value> value = output_.value(s);
          plain &= value.has_value();
          if (value) visit(i, s, *value, written);
        });
    };
    go_through([&](std::size_t i, const Slice& s, Value value, bool written) {
      if (written || !sends(step(i).op) || value == Value::given) return;
      sent = true;
      if (value == Value::last)
        for (const std::int32_t writer : output_.writers_of(s)) kept_[static_cast<std::size_t>(writer)] = true;
    });
    go_through([&](std::size_t i, const Slice& s, Value value, bool written) {
      if (written) plain &= !kept_[i] || step(i).op != Op::copy || step(i).further.count == 0;
      if (written || value != Value::last) return;
      const std::span<const std::int32_t> writers = output_.writers_of(s);
      for (const std::int32_t writer : writers) plain &= is_kept(writer) == is_kept(writers.front());
    });
    return plain && sent;
  }
  bool is_kept(std::int32_t writer) const { return kept_[static_cast<std::size_t>(writer)]; }

  void find_repeated(UnreadableBuffers hidden) {
    output_.rewind();
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const Slice from = as_output(task_, rank_, step(i).from);
      const bool hides = from.buffer == Buffer::input ? hidden.input : from.buffer == Buffer::output && hidden.output;
      if (sends(step(i).op) && hides && from.count > 0 &&
          (from.buffer == Buffer::input || output_.value(from) == Value::given))
        repeated_[from].sends += step(i).second.peer >= 0 ? 2 : 1;
      output_.pass(i);
    }
    std::erase_if(repeated_, [](const auto& one) { return one.second.sends < 2; });
  }

  // Scratch sized like these chunks of another buffer.
  Slice room_for(const Slice& s) {
    Program& program = out_.program;
    const std::int64_t all = s.buffer == Buffer::input ? input_chunks(task_, rank_) : output_chunks(task_, rank_);
    const std::int32_t own =
        by_block(task_.operation.collective) && all < data_chunks(task_) ? rank_ * task_.pieces : 0;
    const Slice room{program.scratch, s.count, Buffer::scratch};
    program.scratch += s.count;
    if (!task_.even || !program.scratch_sizes.empty()) program.scratch_sizes.push_back({s.count, own + s.first});
    return room;
  }

  Slice beside(const Slice& in_output) const { return {beside_ + in_output.first, in_output.count, Buffer::scratch}; }

  // Where this data must be read from now.
  Slice read_at(const Slice& s) {
    const std::optional<Slice> slice = moves_ ? output_.in(s) : std::nullopt;
    if (!slice) return s;
    const Value value = *output_.value(*slice);
    const bool elsewhere =
        value == Value::passing || (value == Value::last && is_kept(output_.writers_of(*slice).front()));
    return elsewhere ? beside(*slice) : s;
  }

  void rewrite(std::size_t i) {
    Step now = step(i);
    after_.clear();
    for (const std::int32_t before : program_.after(now)) after_.push_back(numbers_[static_cast<std::size_t>(before)]);
    further_.assign(program_.further(now).begin(), program_.further(now).end());
    if (reads(now.op)) now.from = read_at(now.from);
    if (now.op == Op::reduce)
      for (Slice& source : further_) source = read_at(source);
    if (sends(now.op)) read_copied(i, now);
    output_.pass(i);
    const auto passes = [&](Slice& s) {
      if (moves_ && output_.in(s) && output_.value(s) == Value::passing) s = beside(s);
    };
    if (now.op == Op::copy) std::ranges::for_each(further_, passes);
    if (writes(now.op)) passes(now.to);
    const bool keeps = moves_ && kept_[i];
    if (keeps) now.to = beside(now.to);
    const std::int32_t number = add(now, i);
    numbers_.push_back(number);
    if (!keeps) return;
    after_.assign(1, number);
    further_.clear();
    add({.op = Op::copy, .channel = now.channel, .to = step(i).to, .from = now.to}, i);
  }

  // Data that is sent more than once is copied to scratch before the first send, and sent from there. No step wrote it,
  // so the copy waits for nothing. Steps that overwrite it wait for the sends.
  void read_copied(std::size_t i, Step& now) {
    const auto found = repeated_.find(as_output(task_, rank_, step(i).from));
    if (found == repeated_.end()) return;
    if (found->first.buffer == Buffer::output && output_.value(found->first) != Value::given) return;
    Repeated& repeated = found->second;
    if (repeated.copy < 0) {
      std::vector<std::int32_t> none;
      none.swap(after_);
      repeated.copy = add({.op = Op::copy, .channel = now.channel, .to = repeated.copied, .from = now.from}, i);
      none.swap(after_);
    }
    now.from = repeated.copied;
    after_.push_back(repeated.copy);
  }

  // Adds the step, with after_ and further_ as its lists, to the new program, and returns its number there.
  std::int32_t add(Step now, std::size_t origin) {
    out_.program.set_after(now, after_);
    out_.program.set_further(now, further_);
    out_.program.steps.push_back(now);
    out_.origins.push_back(static_cast<std::int32_t>(origin));
    return static_cast<std::int32_t>(out_.program.steps.size()) - 1;
  }

  const Task& task_;
  const Rank rank_;
  const Program& program_;
  Output output_;
  bool moves_ = false;      // outputs that are also sent are made in scratch
  std::vector<bool> kept_;  // by step: result is also copied to the output
  std::int32_t beside_ = 0;
  std::map<Slice, Repeated, BySlice> repeated_;  // keyed by output slice where input and output overlap
  StagedProgram out_;
  std::vector<std::int32_t> numbers_;  // new step number, by old step
  std::vector<std::int32_t> after_;    // of the step being built
  std::vector<Slice> further_;
};

}  // namespace

StagedProgram stage_unreadable_buffers(const Task& task, Rank rank, const Program& program, UnreadableBuffers hidden) {
  return Rewriter(task, rank, program).done(hidden);
}

Schedule stage_unreadable_buffers(const Schedule& s, UnreadableBuffers hidden) {
  Schedule changed{s.task, s.algorithm, s.channels, {}};
  for (Rank r = 0; r < s.ranks(); ++r)
    changed.programs.push_back(
        stage_unreadable_buffers(s.task, r, s.programs[static_cast<std::size_t>(r)], hidden).program);
  return changed;
}

}  // namespace trellis::schedule
