#include "schedule/proof/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "schedule/proof/check_steps.h"
#include "schedule/proof/reference_interpreter.h"
#include "schedule/proof/step_race_detector.h"
#include "schedule/proof/symbolic_values.h"

namespace trellis::schedule {
namespace {

using Form = Wanted::Form;

std::string describe(const SymbolicValues::Leaf& leaf) {
  return fmt::format("in[{}] of rank {}", leaf.chunk, leaf.rank);
}

// Describes briefly what a sum has too many or too few of.
std::string describe_sum(const std::vector<SymbolicValues::Leaf>& have, const Wanted& want, Rank ranks) {
  std::vector<std::string> wrong;
  std::size_t faults = 0;
  const auto note = [&](std::string text) {
    if (++faults <= 4) wrong.push_back(std::move(text));
  };
  for (auto at = have.begin(); at != have.end();) {
    const auto others = std::find_if(at, have.end(), [&](const SymbolicValues::Leaf& leaf) { return leaf != *at; });
    const auto times = others - at;
    if (at->chunk != want.chunk)
      note(fmt::format("{} is in it", describe(*at)));
    else if (times > 1)
      note(fmt::format("{} counts {}", describe(*at), times == 2 ? "twice" : fmt::format("{} times", times)));
    at = others;
  }
  for (Rank r = 0; r < ranks; ++r)
    if (!std::ranges::binary_search(have, SymbolicValues::Leaf{r, want.chunk}))
      note(fmt::format("{} is missing", describe(SymbolicValues::Leaf{r, want.chunk})));
  if (faults > wrong.size()) wrong.push_back(fmt::format("and {} more", faults - wrong.size()));
  return fmt::format("{}", fmt::join(wrong, ", "));
}

// Checks the final chunks against the collective's post-condition.
class Outcome {
 public:
  Outcome(const Schedule& s, const SymbolicValues& symbols, WorkBudget& work)
      : s_(s),
        symbols_(symbols),
        work_(work),
        right_(data_chunks(s.task), SymbolicValues::nothing),
        proved_(reduces(s.task.operation.collective) ? symbols.count() : 0, unproved) {}

  std::optional<Fault> check(Rank rank, std::int64_t chunk, Symbol held) {
    const Wanted want = wanted(s_.task, rank, chunk);
    std::string why;
    if (want.form == Form::anything) return {};
    if (held == SymbolicValues::nothing)
      why = "holds nothing";
    else if (want.form == Form::copy)
      why = check_copy(held, want);
    else
      why = want.form == Form::sum ? check_sum(held, want) : check_arrivals(held, want);
    if (why.empty()) return {};
    const std::int64_t step = last_writer(rank, chunk);
    const std::string last = step < 0 ? "no step writes it" : fmt::format("last written by {}", where(s_, rank, step));
    return Fault{rank, step, chunk, fmt::format("rank {} out[{}] ends wrong: {}; {}", rank, chunk, why, last)};
  }

  bool same_bits() const { return same_bits_; }

 private:
  std::string check_copy(Symbol held, const Wanted& want) const {
    if (held == symbols_.input(want.source, want.chunk)) return {};
    const std::string wish = describe(SymbolicValues::Leaf{want.source, want.chunk});
    if (symbols_.is_input(held)) return fmt::format("it holds {} instead of {}", describe(symbols_.leaf(held)), wish);
    return fmt::format("it holds a sum of {} chunks instead of {}", symbols_.terms(held), wish);
  }

  std::string check_sum(Symbol held, const Wanted& want) {
    Symbol& right = right_[want.chunk];
    if (proved_[held] == want.chunk) {
      same_bits_ &= held == right;
      return {};
    }
    const auto ranks = static_cast<std::uint32_t>(s_.ranks());
    work_.spend(WorkBudget::term * ranks);
    const auto leaves = symbols_.expand(held, ranks * std::size_t{2});
    bool good = symbols_.terms(held) == ranks && leaves.size() == ranks;
    for (Rank r = 0; good && r < s_.ranks(); ++r) good = leaves[r] == SymbolicValues::Leaf{r, want.chunk};
    if (!good) return describe_sum(leaves, want, s_.ranks());
    if (right != SymbolicValues::nothing)
      same_bits_ = false;
    else
      right = held;
    proved_[held] = static_cast<std::int32_t>(want.chunk);
    return {};
  }

  std::string check_arrivals(Symbol held, const Wanted& want) const {
    const auto leaves = symbols_.distinct(held, work_);
    for (Rank r = 0; r < s_.ranks(); ++r)
      if (!std::ranges::binary_search(leaves, SymbolicValues::Leaf{r, want.chunk}))
        return fmt::format("it does not wait for rank {}", r);
    return {};
  }

  std::int64_t last_writer(Rank rank, std::int64_t chunk) const {
    const Program& program = s_.programs[rank];
    const Cells base = cells(s_.task, rank);
    const std::int64_t cell = base.at(Buffer::output, chunk);
    std::int64_t last = -1;
    for (std::size_t i = 0; i < program.steps.size(); ++i)
      each_slice(program, program.steps[i], [&](const Slice& x, bool written) {
        const std::int64_t first = base.at(x.buffer, x.first);
        if (written && first <= cell && cell < first + x.count) last = static_cast<std::int64_t>(i);
      });
    return last;
  }

  const Schedule& s_;
  static constexpr std::int32_t unproved = -1;
  const SymbolicValues& symbols_;
  WorkBudget& work_;
  std::vector<Symbol> right_;         // by chunk: the first correct sum found
  std::vector<std::int32_t> proved_;  // by symbol: the chunk for which it is correct
  bool same_bits_ = true;
};

std::string describe_circle(const Schedule& s, const StepWiring& wiring, const std::vector<StepId>& circle) {
  std::vector<std::string> stops;
  for (StepId id : circle) {
    if (stops.size() == 6) {
      stops.push_back(fmt::format("{} more", circle.size() - 6));
      break;
    }
    stops.push_back(where(s, wiring.rank(id), wiring.step(id)));
  }
  return fmt::format("{}, which waits for the first", fmt::join(stops, ", which waits for "));
}

std::optional<Fault> follow(const Schedule& s, const StepWiring& wiring, WorkBudget& work, Report& report) {
  SymbolicValues symbols(s.task);
  auto memory = memory_of<Symbol>(s, [&](Rank r, std::int64_t chunk) { return symbols.input(r, chunk); });
  interpret(s, wiring, memory, [&](std::span<const Symbol* const> sources) { return symbols.sum(sources); });
  Outcome outcome(s, symbols, work);
  for (Rank r = 0; r < s.ranks(); ++r) {
    const Cells base = cells(s.task, r);
    for (std::int64_t c = 0; c < output_chunks(s.task, r); ++c)
      if (auto fault = outcome.check(r, c, memory[r][base.at(Buffer::output, c)])) return fault;
  }
  report.same_bits_everywhere = outcome.same_bits();
  return {};
}

// Fills in when each step ends in some valid run.
std::optional<Fault> find_deadlock(const Schedule& s, const StepWiring& wiring, std::vector<StepId>& moments) {
  moments.resize(wiring.count());
  StepId now = 0;
  DataflowExecutor dataflow(s, wiring);
  if (dataflow.run([&](StepId step) { moments[step] = now++; },
                   [&](StepId send, StepId receive) { moments[send] = moments[receive] = now++; }))
    return {};
  const auto circle = dataflow.circle();
  const Rank rank = wiring.rank(circle.front());
  return Fault{rank, wiring.step(circle.front()), -1, fmt::format("deadlock: {}", describe_circle(s, wiring, circle))};
}

std::optional<Fault> find_excess(const Schedule& s, const ProofLimits& most, WorkBudget& work) {
  std::int64_t memory = 0;
  for (Rank r = 0; r < s.ranks(); ++r) {
    const Program& program = s.programs[r];
    if (program.scratch < 0) return Fault{r, -1, -1, fmt::format("rank {} has {} scratch chunks", r, program.scratch)};
    memory += cells(s.task, r).scratch + program.scratch;
    for (const Step& step : program.steps) {
      each_slice(program, step, [&](const Slice& x, bool) { work.spend(WorkBudget::touch * std::max(x.count, 0)); });
      // Counted twice: a sum is built once and checked once at the end.
      if (step.op == Op::recv_reduce || step.op == Op::reduce)
        work.spend(2 * WorkBudget::sum * std::max(step.to.count, 0));
    }
  }
  if (memory <= most.cells) return {};
  return Fault{.text =
                   fmt::format("{} chunks of memory are more than the {} that a proof may take", memory, most.cells)};
}

std::optional<Fault> find_fault(const Schedule& s, const StepWiring& wiring, const ProofLimits& most,
                                Report& report) try {
  WorkBudget work(most.work);
  if (auto fault = find_excess(s, most, work)) return fault;
  for (Rank r = 0; r < s.ranks(); ++r)
    if (auto fault = find_misfit(s.task, s.channels, r, s.programs[r])) return fault;
  if (auto fault = find_unequal_ends(s, wiring)) return fault;
  std::vector<StepId> moments;
  if (auto fault = find_deadlock(s, wiring, moments)) return fault;
  StepRaceDetector races(s, wiring, moments, work);
  for (Rank r = 0; r < s.ranks(); ++r)
    if (auto fault = races.find(r)) return fault;
  return follow(s, wiring, work, report);
} catch (const WorkBudget::Spent&) {
  return Fault{.text =
                   fmt::format("it is neither proved nor faulty: to follow its chunks and waits takes more than the "
                               "work of {} chunks read or written, the most that a proof may take",
                               most.work)};
}

// Calls visit(number) for every chunk number and count in the schedule, for reading or writing.
template <class Any, class Visit>
void each_number(Any& s, Visit visit) {
  visit(s.task.pieces);
  const auto slice = [&](auto& x) { visit(x.first), visit(x.count); };
  for (auto& program : s.programs) {
    visit(program.scratch);
    for (auto& size : program.scratch_sizes) visit(size.like), visit(size.count);
    for (auto& step : program.steps) slice(step.to), slice(step.from);
    for (auto& more : program.slices) slice(more);
  }
}

// The largest number of chunks that act as one: every run of chunks begins and ends at a multiple of it. The programs'
// lists must hold all that steps refer to.
std::int32_t grain_of(const Schedule& s) {
  std::int32_t grain = s.task.pieces;
  bool sane = true;
  each_number(s, [&](std::int32_t number) {
    sane &= number >= 0;
    if (grain > 1 && sane) grain = std::gcd(grain, number);
  });
  return sane ? grain : 1;
}

// The schedule with each `grain` chunks merged into one. Proving it proves the schedule, and is cheaper.
Schedule coarser(const Schedule& s, std::int32_t grain) {
  Schedule out = s;
  each_number(out, [&](std::int32_t& number) { number /= grain; });
  return out;
}

// If all runs of chunks begin and end at multiples of a grain, the merged chunks are verified first.
std::optional<Fault> find_fault(const Schedule& s, const ProofLimits& most, Report& report) {
  if (s.channels < 1 || s.channels > most_channels)
    return Fault{.text = fmt::format("{} channels: expected 1 to {}", s.channels, most_channels)};
  StepWiring wiring;
  if (auto fault = StepWiring::connect(s, wiring)) return fault;
  if (const std::int32_t grain = grain_of(s); grain > 1 && !find_fault(coarser(s, grain), wiring, most, report))
    return {};
  return find_fault(s, wiring, most, report);  // again with original chunk numbers, for the report
}

}  // namespace

Report verify(const Schedule& s, const ProofLimits& most) {
  check(s.task);
  Report report{.fault = {}, .steps = s.steps()};
  for (const Program& program : s.programs)
    for (const Step& step : program.steps) report.transfers += receives(step.op);
  report.fault = find_fault(s, most, report);
  return report;
}

std::string Report::text() const {
  if (fault) return fault->text;
  return fmt::format("proved: {} steps, {} transfers{}", steps, transfers,
                     same_bits_everywhere ? "" : "; ranks add up in different orders");
}

}  // namespace trellis::schedule
