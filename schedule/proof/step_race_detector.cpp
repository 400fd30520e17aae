#include "schedule/proof/step_race_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>

namespace trellis::schedule {
namespace {

// Answers whether one step of a program always ends before another starts, by `after` alone. The backward search stops
// as soon as the query is answered, and its state is kept for the next query with the same second step.
class LocalOrder {
 public:
  LocalOrder(const Program& program, WorkBudget& work)
      : program_(program), work_(work), seen_(program.steps.size(), -1) {}

  bool before(std::int32_t first, std::int32_t then) {
    constexpr std::size_t few = 8;
    const auto after = program_.after(program_.steps[then]);
    if (std::ranges::count(after.first(std::min(few, after.size())), first) > 0) return true;
    if (then != then_) {
      then_ = then;
      open_ = {};
      look_behind(then);
    }
    while (seen_[first] != then && !open_.empty() && open_.top() >= first) {
      const std::int32_t at = open_.top();
      open_.pop();
      look_behind(at);
    }
    return seen_[first] == then;
  }

 private:
  void look_behind(std::int32_t step) {
    const auto after = program_.after(program_.steps[step]);
    work_.spend(WorkBudget::wait * (1 + static_cast<std::int64_t>(after.size())));
    for (std::int32_t b : after) {
      if (seen_[b] == then_) continue;
      seen_[b] = then_;
      open_.push(b);
    }
  }

  const Program& program_;
  WorkBudget& work_;
  std::vector<std::int32_t> seen_;          // by step: the last `then` for which it was reached
  std::priority_queue<std::int32_t> open_;  // the latest first
  std::int32_t then_ = -1;
};

// Remembers the last writer of each cell of a rank, and the readers since. touch() returns true if the step that
// touches a cell is not ordered after an earlier one that it conflicts with.
class CellAccesses {
 public:
  explicit CellAccesses(std::int64_t cells) : writer_(cells, -1), last_read_(cells, -1) {}

  template <class Ordered>
  bool touch(std::int64_t cell, std::int32_t step, bool written, std::int32_t& other, Ordered& ordered) {
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

// Caches the last answer, since runs of chunks repeat the same query.
template <class Ask>
class Asked {
 public:
  explicit Asked(Ask ask) : ask_(ask) {}
  bool operator()(std::int32_t first, std::int32_t then) {
    if (first != first_ || then != then_) answer_ = ask_(first, then);
    first_ = first, then_ = then;
    return answer_;
  }

 private:
  Ask ask_;
  std::int32_t first_ = -1, then_ = -1;
  bool answer_ = false;
};

// Visits the steps in the order `running`. elsewhere(first, then) is called if the program's own order does not decide.
template <class Elsewhere>
std::optional<Fault> search(const Task& task, Rank rank, const Program& program,
                            const std::vector<std::int32_t>& running, WorkBudget& work, Elsewhere elsewhere) {
  const Cells base = cells(task, rank);
  LocalOrder local(program, work);
  CellAccesses watch(base.scratch + program.scratch);
  Asked ordered(
      [&](std::int32_t first, std::int32_t then) { return local.before(first, then) || elsewhere(first, then); });
  std::optional<Fault> fault;
  const auto complain = [&](std::int32_t a, std::int32_t b, Buffer buffer, std::int64_t chunk) {
    const auto [earlier, later] = std::minmax(a, b);
    fault =
        Fault{rank, later, chunk,
              fmt::format("{} races with step {} ({}) on {}[{}]: nothing orders the two", where(rank, program, later),
                          earlier, describe(program, program.steps[earlier]), name(buffer), chunk)};
  };
  for (std::size_t i = 0; i < running.size() && !fault; ++i)
    each_slice(program, program.steps[running[i]], [&](const Slice& x, bool written) {
      std::int32_t other = -1;
      for (std::int64_t chunk = x.first; chunk < std::int64_t{x.first} + x.count && !fault; ++chunk)
        if (watch.touch(base.at(x.buffer, chunk), running[i], written, other, ordered))
          complain(running[i], other, x.buffer, chunk);
    });
  return fault;
}

std::vector<std::int32_t> as_listed(const Program& program) {
  std::vector<std::int32_t> steps(program.steps.size());
  std::iota(steps.begin(), steps.end(), 0);
  return steps;
}

}  // namespace

std::optional<Fault> find_race(const Task& task, Rank rank, const Program& program) {
  WorkBudget work(std::numeric_limits<std::int64_t>::max());
  return search(task, rank, program, as_listed(program), work, [](std::int32_t, std::int32_t) { return false; });
}

StepRaceDetector::StepRaceDetector(const Schedule& s, const StepWiring& wiring, const std::vector<StepId>& moments,
                                   WorkBudget& work)
    : s_(s), wiring_(wiring), moments_(moments), work_(work), started_(wiring.count()) {}

std::optional<Fault> StepRaceDetector::find(Rank rank) {
  const Program& program = s_.programs[rank];
  std::vector<std::int32_t> running = as_listed(program);
  std::ranges::stable_sort(running, {}, [&](std::int32_t i) { return moments_[wiring_.id(rank, i)]; });
  return search(s_.task, rank, program, running, work_, [&](std::int32_t first, std::int32_t then) {
    return before(wiring_.id(rank, first), wiring_.id(rank, then));
  });
}

// Forward search from `first`. A receive can end only after its send has started. Steps that end after `then` in the
// known run are pruned, since they can't always come before it.
bool StepRaceDetector::before(StepId first, StepId then) {
  ++question_;
  open_.clear();
  const auto let_go = [&](StepId id) {
    const auto next = wiring_.lets_go(id);
    work_.spend(WorkBudget::wait * (1 + static_cast<std::int64_t>(next.size())));
    for (const StepId step : next) {
      if (started_[step] == question_ || moments_[step] > moments_[then]) continue;
      started_[step] = question_;
      open_.push_back(step);
    }
  };
  let_go(first);
  while (!open_.empty() && started_[then] != question_) {
    const StepId at = open_.back();
    open_.pop_back();
    let_go(at);
    if (!sends(s_.programs[wiring_.rank(at)].steps[wiring_.step(at)].op)) continue;
    let_go(wiring_.partner(at));
    if (wiring_.second_partner(at) != StepWiring::none) let_go(wiring_.second_partner(at));
  }
  return started_[then] == question_;
}

}  // namespace trellis::schedule
