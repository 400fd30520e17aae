#include "schedule/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "schedule/bounds.h"
#include "schedule/interpret.h"
#include "schedule/races.h"
#include "schedule/symbols.h"

namespace trellis::schedule {
namespace {

using Form = Wanted::Form;

std::string describe(const Symbols::Leaf& leaf) { return fmt::format("in[{}] of rank {}", leaf.chunk, leaf.rank); }

// What a sum has too much or too little of, in a few words.
std::string describe_sum(const std::vector<Symbols::Leaf>& have, const Wanted& want, Rank ranks) {
  std::vector<std::string> wrong;
  std::size_t faults = 0;
  const auto note = [&](std::string text) {
    if (++faults <= 4) wrong.push_back(std::move(text));
  };
  for (std::size_t i = 0; i < have.size(); ++i) {
    if (have[i].chunk != want.chunk)
      note(fmt::format("{} is in it", describe(have[i])));
    else if (i > 0 && have[i] == have[i - 1])
      note(fmt::format("{} counts twice", describe(have[i])));
  }
  for (Rank r = 0; r < ranks; ++r)
    if (!std::ranges::binary_search(have, Symbols::Leaf{r, want.chunk}))
      note(fmt::format("{} is missing", describe(Symbols::Leaf{r, want.chunk})));
  if (faults > wrong.size()) wrong.push_back(fmt::format("and {} more", faults - wrong.size()));
  return fmt::format("{}", fmt::join(wrong, ", "));
}

// Whether the chunks end as the collective wants them.
class Outcome {
 public:
  Outcome(const Schedule& s, const Symbols& symbols)
      : s_(s), symbols_(symbols), right_(data_chunks(s.task), Symbols::nothing) {}

  std::optional<Fault> check(Rank rank, std::int64_t chunk, Symbol held) {
    const Wanted want = wanted(s_.task, rank, chunk);
    std::string why;
    if (want.form == Form::anything) return {};
    if (held == Symbols::nothing)
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
    const std::string wish = describe(Symbols::Leaf{want.source, want.chunk});
    if (symbols_.is_input(held)) return fmt::format("it holds {} instead of {}", describe(symbols_.leaf(held)), wish);
    return fmt::format("it holds a sum of {} chunks instead of {}", symbols_.terms(held), wish);
  }

  std::string check_sum(Symbol held, const Wanted& want) {
    Symbol& right = right_[want.chunk];
    if (const auto known = proved_.find(held); known != proved_.end() && known->second == want.chunk) {
      same_bits_ &= held == right;
      return {};
    }
    const auto ranks = static_cast<std::uint32_t>(s_.ranks());
    const auto leaves = symbols_.expand(held, ranks * std::size_t{2});
    bool good = symbols_.terms(held) == ranks && leaves.size() == ranks;
    for (Rank r = 0; good && r < s_.ranks(); ++r) good = leaves[r] == Symbols::Leaf{r, want.chunk};
    if (!good) return describe_sum(leaves, want, s_.ranks());
    if (right != Symbols::nothing)
      same_bits_ = false;
    else
      right = held;
    proved_.emplace(held, want.chunk);
    return {};
  }

  std::string check_arrivals(Symbol held, const Wanted& want) const {
    const auto leaves = symbols_.distinct(held);
    for (Rank r = 0; r < s_.ranks(); ++r)
      if (!std::ranges::binary_search(leaves, Symbols::Leaf{r, want.chunk}))
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
  const Symbols& symbols_;
  std::vector<Symbol> right_;                        // by chunk: the first sum found to be right
  std::unordered_map<Symbol, std::int64_t> proved_;  // all of them, and for which chunk each is right
  bool same_bits_ = true;
};

std::string describe_circle(const Schedule& s, const Wiring& wiring, const std::vector<StepId>& circle) {
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

std::optional<Fault> follow(const Schedule& s, const Wiring& wiring, Report& report) {
  Symbols symbols(s.task);
  auto memory = memory_of<Symbol>(s, [&](Rank r, std::int64_t chunk) { return symbols.input(r, chunk); });
  interpret(s, wiring, memory, [&](std::span<const Symbol* const> sources) { return symbols.sum(sources); });
  Outcome outcome(s, symbols);
  for (Rank r = 0; r < s.ranks(); ++r) {
    const Cells base = cells(s.task, r);
    for (std::int64_t c = 0; c < output_chunks(s.task, r); ++c)
      if (auto fault = outcome.check(r, c, memory[r][base.at(Buffer::output, c)])) return fault;
  }
  report.same_bits_everywhere = outcome.same_bits();
  return {};
}

std::optional<Fault> find_deadlock(const Schedule& s, const Wiring& wiring) {
  Dataflow dataflow(s, wiring);
  if (dataflow.run([](StepId) {}, [](StepId, StepId) {})) return {};
  const auto circle = dataflow.circle();
  const Rank rank = wiring.rank(circle.front());
  return Fault{rank, wiring.step(circle.front()), -1, fmt::format("deadlock: {}", describe_circle(s, wiring, circle))};
}

std::optional<Fault> find_excess(const Schedule& s, const Effort& most) {
  std::int64_t memory = 0, touches = 0;
  for (Rank r = 0; r < s.ranks(); ++r) {
    const Program& program = s.programs[r];
    if (program.scratch < 0) return Fault{r, -1, -1, fmt::format("rank {} has {} scratch chunks", r, program.scratch)};
    memory += cells(s.task, r).scratch + program.scratch;
    for (const Step& step : program.steps)
      each_slice(program, step, [&](const Slice& x, bool) { touches += std::max(x.count, 0); });
  }
  if (memory > most.cells)
    return Fault{.text =
                     fmt::format("{} chunks of memory are more than the {} that a proof may take", memory, most.cells)};
  if (touches > most.touches)
    return Fault{.text = fmt::format("its steps touch {} chunks, more than the {} that a proof may follow", touches,
                                     most.touches)};
  return {};
}

std::optional<Fault> find_fault(const Schedule& s, const Effort& most, Report& report) {
  if (s.channels < 1 || s.channels > most_channels)
    return Fault{.text = fmt::format("{} channels: expected 1 to {}", s.channels, most_channels)};
  Wiring wiring;
  if (auto fault = Wiring::connect(s, wiring)) return fault;
  if (auto fault = find_excess(s, most)) return fault;
  for (Rank r = 0; r < s.ranks(); ++r)
    if (auto fault = find_misfit(s.task, s.channels, r, s.programs[r])) return fault;
  if (auto fault = find_unequal_ends(s, wiring)) return fault;
  if (auto fault = find_deadlock(s, wiring)) return fault;
  for (Rank r = 0; r < s.ranks(); ++r)
    if (auto fault = find_race(s, r, wiring)) return fault;
  return follow(s, wiring, report);
}

}  // namespace

Report verify(const Schedule& s, const Effort& most) {
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
