#include "tests/schedule/chaos.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace trellis::schedule {
namespace {

// The content of a chunk: how often each rank's chunk was added to it, and its kind. Chunks of one kind have equal
// lengths, whatever the caller's counts are; a sum of different kinds is rubbish.
struct Value {
  std::map<std::pair<Rank, std::int64_t>, int> terms = {};
  std::int64_t kind = -1;
  bool rubbish = true;
  bool operator==(const Value&) const = default;
};

Value sum(const std::vector<Value>& values) {
  Value total = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i].kind != total.kind) total.rubbish = true;
    total.rubbish |= values[i].rubbish;
    for (const auto& [term, times] : values[i].terms) total.terms[term] += times;
  }
  return total;
}

class Chaos {
 public:
  Chaos(const Schedule& s, std::mt19937& random) : s_(s), random_(random) {
    for (Rank r = 0; r < s.ranks(); ++r) {
      const Program& program = s.programs[r];
      cells_.push_back(cells(s.task, r));
      kinds_.emplace_back(s.task, r, program);
      memory_.emplace_back(cells_[r].scratch + program.scratch);
      for (std::int64_t c = 0; c < input_chunks(s.task, r); ++c)
        memory_[r][cells_[r].at(Buffer::input, c)] = {{{{r, c}, 1}}, kinds_[r].of(Buffer::input, c), false};
      state_.emplace_back(program.steps.size(), waiting);
      taken_.emplace_back(program.steps.size());
    }
  }

  std::string run() {
    std::int64_t left = s_.steps();
    while (left > 0) {
      std::vector<std::pair<Rank, std::int32_t>> possible;
      for (Rank r = 0; r < s_.ranks(); ++r)
        for (std::size_t i = 0; i < state_[r].size(); ++i)
          if (can_advance(r, static_cast<std::int32_t>(i))) possible.emplace_back(r, static_cast<std::int32_t>(i));
      if (possible.empty()) return "it sticks";
      std::shuffle(possible.begin(), possible.end(), random_);
      possible.resize((possible.size() + 1) / 2);
      for (auto [r, i] : possible) left -= advance(r, i);
    }
    return compare();
  }

 private:
  enum State : std::uint8_t { waiting, started, ended };
  using Wire = std::tuple<Rank, Rank, std::uint8_t, std::int32_t>;
  using Taken = std::vector<std::vector<Value>>;  // by chunk of the run, by source

  bool can_advance(Rank r, std::int32_t i) const {
    const Program& program = s_.programs[r];
    const Step& step = program.steps[i];
    if (state_[r][i] == ended) return false;
    if (state_[r][i] == started)
      return !receives(step.op) || wires_.contains({step.end.peer, r, step.channel, step.end.tag});
    for (std::int32_t before : program.after(step))
      if (state_[r][before] != ended) return false;
    return true;
  }

  bool advance(Rank r, std::int32_t i) {
    const Step& step = s_.programs[r].steps[i];
    if (state_[r][i] == waiting) {
      state_[r][i] = started;
      if (random_() % 2) taken_[r][i] = take(r, step);
      if (taken_[r][i].empty() && random_() % 2 == 0) return false;
      if (!taken_[r][i].empty()) spoil(r, step);
      return false;
    }
    finish(r, step, taken_[r][i].empty() ? take(r, step) : taken_[r][i]);
    state_[r][i] = ended;
    return true;
  }

  Value& cell(Rank r, const Slice& x, std::int32_t k) {
    return memory_.at(r).at(cells_[r].at(x.buffer, std::int64_t{x.first} + k));
  }

  Taken take(Rank r, const Step& step) {
    Taken taken(step.op == Op::recv ? 0 : step.from.count);
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(taken.size()); ++k) {
      taken[k].push_back(cell(r, step.from, k));
      if (step.op == Op::reduce)
        for (const Slice& more : s_.programs[r].further(step)) taken[k].push_back(cell(r, more, k));
    }
    return taken;
  }

  void spoil(Rank r, const Step& step) {
    each_slice(s_.programs[r], step, [&](const Slice& x, bool written) {
      for (std::int32_t k = 0; written && k < x.count; ++k) cell(r, x, k).rubbish = true;
    });
  }

  void put(Rank r, const Slice& x, std::int32_t k, Value value) {
    if (value.kind != kinds_[r].of(x.buffer, std::int64_t{x.first} + k)) value.rubbish = true;
    cell(r, x, k) = std::move(value);
  }

  void finish(Rank r, const Step& step, const Taken& taken) {
    if (sends(step.op)) {
      std::vector<Value> message;
      for (const auto& chunk : taken) message.push_back(chunk.front());
      wires_[{r, step.end.peer, step.channel, step.end.tag}] = message;
      if (step.second != End{}) wires_[{r, step.second.peer, step.channel, step.second.tag}] = message;
      return;
    }
    std::vector<Value> arrived;
    if (receives(step.op)) arrived = wires_.at({step.end.peer, r, step.channel, step.end.tag});
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      std::vector<Value> sources = step.op == Op::recv ? std::vector<Value>{} : taken[k];
      if (receives(step.op)) sources.push_back(k < static_cast<std::int32_t>(arrived.size()) ? arrived[k] : Value{});
      const Value result = step.op == Op::copy ? sources.front() : sum(sources);
      put(r, step.to, k, result);
      if (step.op == Op::copy)
        for (const Slice& also : s_.programs[r].further(step)) put(r, also, k, result);
    }
  }

  std::string compare() {
    for (Rank r = 0; r < s_.ranks(); ++r)
      for (std::int64_t c = 0; c < output_chunks(s_.task, r); ++c) {
        const Wanted want = wanted(s_.task, r, c);
        const Value& have = memory_[r][cells_[r].at(Buffer::output, c)];
        if (want.form == Wanted::Form::anything) continue;
        bool right = !have.rubbish && have.kind == kinds_[r].of(Buffer::output, c);
        if (want.form == Wanted::Form::copy) {
          right &= have.terms == std::map<std::pair<Rank, std::int64_t>, int>{{{want.source, want.chunk}, 1}};
        } else {
          right &= static_cast<Rank>(have.terms.size()) == s_.ranks();
          for (const auto& [term, times] : have.terms)
            right &= term.second == want.chunk && (times == 1 || want.form == Wanted::Form::all_arrived);
        }
        if (!right) return fmt::format("rank {} out[{}] is wrong", r, c);
      }
    return "";
  }

  const Schedule& s_;
  std::mt19937& random_;
  std::vector<Cells> cells_;
  std::vector<Kinds> kinds_;
  std::vector<std::vector<Value>> memory_;
  std::vector<std::vector<State>> state_;
  std::vector<std::vector<Taken>> taken_;
  std::map<Wire, std::vector<Value>> wires_;
};

}  // namespace

std::string run_in_chaos(const Schedule& s, std::mt19937& random) { return Chaos(s, random).run(); }

}  // namespace trellis::schedule
