#include "schedule/races.h"

#include <fmt/format.h>

#include <queue>
#include <unordered_set>

namespace trellis::schedule {
namespace {

// Whether one step of a program always ends before another starts, by the program's own order. What one step waits for
// is followed back no farther than was asked, and kept while the questions are about that step.
class LocalOrder {
 public:
  explicit LocalOrder(const Program& program) : program_(program), seen_(program.steps.size(), -1) {}

  bool before(std::int32_t first, std::int32_t then) {
    for (std::int32_t b : program_.after(program_.steps[then]))
      if (b == first) return true;
    if (then != then_) {
      then_ = then;
      open_ = {};
      look_behind(then);
    }
    while (!open_.empty() && open_.top() >= first) {
      const std::int32_t at = open_.top();
      open_.pop();
      look_behind(at);
    }
    return seen_[first] == then;
  }

 private:
  void look_behind(std::int32_t step) {
    for (std::int32_t b : program_.after(program_.steps[step])) {
      if (seen_[b] == then_) continue;
      seen_[b] = then_;
      open_.push(b);
    }
  }

  const Program& program_;
  std::vector<std::int32_t> seen_;          // by the question about which step
  std::priority_queue<std::int32_t> open_;  // the latest first
  std::int32_t then_ = -1;
};

// The same through other ranks: what has arrived must have been sent.
bool before_through_data(const Schedule& s, const Wiring& wiring, StepId first, StepId then) {
  constexpr std::size_t most = 1'000'000;  // steps looked at before giving up
  std::unordered_set<StepId> started;      // after `first` ended
  std::vector<StepId> open;
  const auto let_go = [&](StepId id) {
    for (StepId next : wiring.lets_go(id))
      if (started.insert(next).second) open.push_back(next);
  };
  let_go(first);
  while (!open.empty() && started.size() < most) {
    const StepId at = open.back();
    open.pop_back();
    if (at == then) return true;
    let_go(at);
    if (!sends(s.programs[wiring.rank(at)].steps[wiring.step(at)].op)) continue;
    let_go(wiring.partner(at));
    if (wiring.second_partner(at) != Wiring::none) let_go(wiring.second_partner(at));
  }
  return false;
}

// Last writer of each cell of a rank, and who has read it since.
class Watch {
 public:
  explicit Watch(std::int64_t cells) : writer_(cells, -1), last_read_(cells, -1) {}

  template <class Ordered>
  bool touch(std::int64_t cell, std::int32_t step, bool written, std::int32_t& other, Ordered ordered) {
    const auto clashes = [&](std::int32_t earlier) {
      other = earlier;
      return earlier >= 0 && earlier != step && !ordered(earlier, step);
    };
    if (!written) {
      if (clashes(writer_[cell])) return true;
      reads_.push_back({step, last_read_[cell]});
      last_read_[cell] = static_cast<std::int32_t>(reads_.size() - 1);
      return false;
    }
    bool read_by_others = false;
    for (std::int32_t at = last_read_[cell]; at >= 0; at = reads_[at].previous) {
      if (clashes(reads_[at].step)) return true;
      read_by_others |= reads_[at].step != step;
    }
    if (!read_by_others && clashes(writer_[cell])) return true;
    writer_[cell] = step;
    last_read_[cell] = -1;
    return false;
  }

 private:
  struct Read {
    std::int32_t step, previous;
  };
  std::vector<std::int32_t> writer_, last_read_;
  std::vector<Read> reads_;
};

// elsewhere(first, then) is asked where the program's own order says nothing.
template <class Elsewhere>
std::optional<Fault> search(const Task& task, Rank rank, const Program& program, Elsewhere elsewhere) {
  const Cells base = cells(task, rank);
  LocalOrder local(program);
  Watch watch(base.scratch + program.scratch);
  const auto ordered = [&](std::int32_t first, std::int32_t then) {
    return local.before(first, then) || elsewhere(first, then);
  };
  std::optional<Fault> fault;
  for (std::size_t i = 0; i < program.steps.size() && !fault; ++i)
    each_slice(program, program.steps[i], [&](const Slice& x, bool written) {
      const auto step = static_cast<std::int32_t>(i);
      std::int32_t other = -1;
      for (std::int32_t k = 0; k < x.count && !fault; ++k)
        if (watch.touch(base.at(x.buffer, std::int64_t{x.first} + k), step, written, other, ordered))
          fault = Fault{
              rank, step, std::int64_t{x.first} + k,
              fmt::format("{} races with step {} ({}) on {}[{}]: nothing orders the two", where(rank, program, step),
                          other, describe(program, program.steps[other]), name(x.buffer), x.first + k)};
    });
  return fault;
}

}  // namespace

std::optional<Fault> find_race(const Task& task, Rank rank, const Program& program) {
  return search(task, rank, program, [](std::int32_t, std::int32_t) { return false; });
}

std::optional<Fault> find_race(const Schedule& s, Rank rank, const Wiring& wiring) {
  return search(s.task, rank, s.programs[rank], [&](std::int32_t first, std::int32_t then) {
    return before_through_data(s, wiring, wiring.id(rank, first), wiring.id(rank, then));
  });
}

}  // namespace trellis::schedule
