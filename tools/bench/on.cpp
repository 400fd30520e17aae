#include "tools/bench/on.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "ccl/plan/check.h"
#include "sim/choose/choice.h"
#include "sim/price/interval.h"
#include "tools/answer/machine_typed.h"
#include "tools/answer/price_watch.h"
#include "tools/bench/buffers.h"
#include "tools/bench/report/result.h"
#include "tools/program/output.h"

namespace trellis::tools {
namespace {

constexpr std::string_view simulator = "sim:";

// Refuses options that only make sense for a real run.
void expect_nothing_to_run(const BenchSettings& s) {
  const auto refuse = [](bool asked, const char* flag) {
    if (asked) throw std::invalid_argument(fmt::format("{} goes with ranks that run, and --on simulates them", flag));
  };
  refuse(s.streams > 1, "--streams");
  refuse(s.grouped > 1, "-m");
  refuse(s.repeated > 1, "--inside");
  refuse(s.unaligned != 0, "--unalign");
  refuse(s.device_memory, "--local_register");
  refuse(s.cycles != 1, "--run_cycles");
  refuse(s.cpu_time, "--report_cputime");
  refuse(s.per_iteration, "--per_iter_timing");
  refuse(s.memory_report, "--memory");
}

// The rows of one benchmark on one machine.
class Simulated {
 public:
  Simulated(const BenchSettings& s, const sim::MachineSpec& spec) : s_(s), spec_(spec), machine_(spec) {
    machine_.overheads(s.era);  // throws for an unknown era
    group_ = sim::first_in_a_row(machine_, s.ranks);
    roots_ = s.roots;
    for (ccl::Rank r = 0; r < ranks() && s.roots.empty(); ++r) roots_.push_back(r);
    if (roots_.front() >= ranks())
      throw std::invalid_argument(fmt::format("root {}: expected {}", roots_.front(), range_text(0, ranks() - 1)));
  }

  int run() {
    expect_served();
    for (const std::string& path : {s_.json, s_.csv, s_.plot}) expect_writable(path);
    write_output("", bench_heading(s_, {fmt::format("{} ranks of {} simulated", ranks(), machine_.name())}));
    const std::size_t rows = s_.types.size() * s_.reductions.size() * roots_.size() * s_.sizes.size();
    std::size_t done = 0;
    for (const kernels::DType type : s_.types)
      for (const kernels::Reduction op : s_.reductions)
        for (const ccl::Rank root : roots_) {
          pricers_.clear();
          for (const std::uint64_t bytes : s_.sizes)
            done += !watch_.interrupted() && row(bytes, type, op, root) ? 1 : 0;
        }
    watch_.clear();
    write_output("", bench_footer(s_, totals_));
    if (!s_.json.empty()) write_output(s_.json, bench_json(s_, results_));
    if (!s_.csv.empty()) write_output(s_.csv, bench_csv(s_, results_));
    if (!s_.plot.empty() && done > 0) write_output(s_.plot, bench_plot(results_));
    if (done < rows) throw std::runtime_error(fmt::format("interrupted: {} of {} rows are there", done, rows));
    return 0;
  }

 private:
  // The algorithm, its time, and the interval of that time.
  struct Answer {
    std::string way;
    sim::Time time = sim::forever;
    sim::Interval interval;
  };

  ccl::Rank ranks() const { return group_.ranks(); }

  // Reports requests that can't be served before the heading is printed. All kinds of rows are alike in this.
  void expect_served() {
    const std::uint64_t bytes = s_.sizes.front();
    const auto calls = calls_for(s_, bytes, s_.types.front(), s_.reductions.front(), roots_.front(), ranks());
    const bool both = s_.in_place && has_in_place(s_.op.collective);
    for (int in_place = 0; in_place <= (both ? 1 : 0); ++in_place) {
      const sim::Pricer& pricer = pricer_for(s_.types.front(), in_place != 0, roots_.front(), calls.front());
      schedule::check(pricer.request({"direct"}));
      ways_for(pricer, static_cast<double>(larger_buffer_bytes(calls)));
    }
    pricers_.clear();
  }

  // Returns false when it was interrupted.
  bool row(std::uint64_t bytes, kernels::DType type, kernels::Reduction op, ccl::Rank root) {
    const auto out = one(bytes, type, op, root, false);
    const bool both = s_.in_place && has_in_place(s_.op.collective);
    const auto in = both ? one(bytes, type, op, root, true) : std::nullopt;
    if (!out || (both && !in)) return false;
    for (const auto& result : {out, in})
      if (result) keep(*result);
    watch_.clear();
    write_output("", bench_row(s_, &*out, both ? &*in : nullptr));
    return true;
  }

  std::optional<BenchResult> one(std::uint64_t bytes, kernels::DType type, kernels::Reduction op, ccl::Rank root,
                                 bool in_place) {
    const auto calls = calls_for(s_, bytes, type, op, root, ranks());
    const auto moved = larger_buffer_bytes(calls);
    watch_.begin(fmt::format("{} of {}{}", s_.op.word, bytes_text(moved), in_place ? " in place" : ""));
    const bool weighted = schedule::uneven(s_.op.collective) && !s_.weights.empty();
    sim::Pricer& pricer = pricer_for(type, in_place, root, calls.front());
    const std::vector<sim::Way> ways = ways_for(pricer, static_cast<double>(moved));
    const Answer found = weighted ? best_of(pricer, ways, calls, static_cast<double>(moved))
                                  : best_of(pricer, ways, static_cast<double>(moved));
    if (watch_.interrupted()) return {};
    if (found.way.empty())
      throw std::invalid_argument(
          fmt::format("{} of {}: more moves than can be gone through", s_.op.word, bytes_text(moved)));
    const bool rooted = schedule::rooted(s_.op.collective) || s_.op.collective == schedule::Collective::send_recv;
    BenchResult r{.collective = s_.op.collective,
                  .op = s_.op.word,
                  .ranks = ranks(),
                  .bytes = moved,
                  .count = calls.front().count,
                  .type = type,
                  .reduction = op,
                  .root = rooted ? root : -1,
                  .in_place = in_place,
                  .measured = {.us = {sim::in_us(found.time)}, .algorithm = found.way},
                  .low_us = sim::in_us(found.interval.low),
                  .high_us = sim::in_us(found.interval.high)};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const ccl::Extents e = ccl::extents_of(calls[i], static_cast<ccl::Rank>(i), ranks());
      r.input_bytes += e.input, r.output_bytes += e.output;
    }
    return r;
  }

  sim::Interval interval(const sim::Pattern& pattern, const sim::PriceOptions& options, sim::Time time) {
    if (!s_.interval) return {};
    watch_.begin("pricing again with other figures");
    return sim::interval(pattern, spec_, options, time);
  }

  Answer best_of(sim::Pricer& pricer, const std::vector<sim::Way>& ways, double bytes) {
    const sim::Choice choice = sim::choose(pricer, ways, bytes, {.within = sim::usual_within});
    if (choice.best.empty() || watch_.interrupted()) return {};
    const sim::Cost& best = choice.best.front();
    return {sim::text_of(best.way), best.time,
            interval(pricer.pattern(best.way, bytes), pricer.options(bytes), best.time)};
  }

  // For uneven blocks: a pattern of each way for exactly these blocks.
  Answer best_of(const sim::Pricer& pricer, const std::vector<sim::Way>& ways, const std::vector<ccl::Call>& calls,
                 double bytes) {
    std::vector<std::int64_t> blocks(calls.front().counts.begin(), calls.front().counts.end());
    for (std::size_t r = 1; r < calls.size() && s_.op.collective == schedule::Collective::all_to_all_v; ++r)
      blocks.insert(blocks.end(), calls[r].counts.begin(), calls[r].counts.end());
    Answer best;
    std::optional<sim::Pattern> pattern;
    for (const sim::Way& way : ways) {
      sim::Pattern own(make(schedule::algorithm_named(way.algorithm), pricer.request(way)), blocks);
      const sim::Time time = sim::price(own, machine_, pricer.options(bytes, best.time)).time;
      if (time >= best.time) continue;
      best.way = sim::text_of(way), best.time = time;
      pattern.emplace(std::move(own));
    }
    if (pattern) best.interval = interval(*pattern, pricer.options(bytes), best.time);
    return best;
  }

  sim::Pricer& pricer_for(kernels::DType type, bool in_place, ccl::Rank root, const ccl::Call& call) {
    std::unique_ptr<sim::Pricer>& kept = pricers_[in_place];
    if (!kept)
      kept = std::make_unique<sim::Pricer>(machine_, group_,
                                           sim::Pricer::Settings{.collective = s_.op.collective,
                                                                 .era = s_.era,
                                                                 .element = static_cast<double>(size_of(type)),
                                                                 .root = root,
                                                                 .peer = call.peer,
                                                                 .pairs = {call.pairs.begin(), call.pairs.end()},
                                                                 .in_place = in_place,
                                                                 .stopped = [this](sim::Time reached, double done) {
                                                                   return watch_.stopped(reached, done);
                                                                 }});
    return *kept;
  }

  std::vector<sim::Way> ways_for(const sim::Pricer& pricer, double bytes) const {
    if (s_.algorithm.empty()) {
      std::vector<sim::Way> usual = sim::usual_ways(pricer, bytes);
      if (usual.empty()) throw std::invalid_argument(fmt::format("no algorithm serves {} there", s_.op.word));
      return usual;
    }
    sim::Way way = schedule::way_named(s_.algorithm);
    if (way.dims.empty()) way.dims = sim::usual_dims(way.algorithm, machine_, ranks());
    if (const std::string why = pricer.refusal(way); !why.empty())
      throw std::invalid_argument(fmt::format("--algorithm {}: {}", s_.algorithm, why));
    return {way};
  }

  void keep(const BenchResult& r) {
    totals_.busbw_sum += r.busbw_GBps(r.measured.us.front());
    ++totals_.rows;
    results_.push_back(r);
  }

  const BenchSettings& s_;
  const sim::MachineSpec& spec_;
  const sim::Machine machine_;
  sim::Group group_;
  std::vector<ccl::Rank> roots_;
  std::map<bool, std::unique_ptr<sim::Pricer>> pricers_;  // by in_place, for one kind of row
  PriceWatch watch_;
  std::vector<BenchResult> results_;
  BenchTotals totals_;
};

}  // namespace

int bench_on(const std::string& place, const BenchSettings& s) {
  if (!place.starts_with(simulator))
    throw std::invalid_argument(fmt::format("--on {}: expected sim:MACHINE, as in sim:trn2.48xlarge", place));
  expect_nothing_to_run(s);
  const sim::MachineSpec spec = typed_machine(place.substr(simulator.size()), s.what_if);
  return Simulated(s, spec).run();
}

}  // namespace trellis::tools
