#include "tools/bench/on_simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "measure/buffers.h"
#include "schedule/collective_traits.h"
#include "sim/cluster/answer/collective_answer.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/price_progress.h"
#include "tools/bench/flags.h"
#include "tools/bench/report/result.h"
#include "tools/program/output.h"

namespace trellis::tools {

using namespace measure;
namespace {

constexpr std::string_view simulator = "sim:";

// Options that only make sense for a real run.
constexpr const char* of_a_run[] = {"-n",          "-w",         "-m",          "-N",        "-R",
                                    "-u",          "-T",         "-c",          "-a",        "-C",
                                    "-M",          "-I",         "-K",          "-s",        "--hosts-file",
                                    "--rsh",       "--inside",   "--untouched", "--streams", "--threads",
                                    "--transport", "--provider", "--no-pin",    "--seed",    "--interpret-up-to"};

void expect_nothing_to_run(const BenchOptions& o) {
  for (const Flag& f : bench_flags())
    if (const std::string name(f.short_name());
        std::ranges::find(of_a_run, name) != std::end(of_a_run) && o.app->count(name) != 0)
      text::refuse("{} goes with ranks that run, and --on simulates them", name);
}

// The rows of one benchmark on one machine.
class Simulated {
 public:
  Simulated(const BenchSettings& s, sim::MachineSpec spec) : s_(s), priced_(std::move(spec), &watch_) {
    priced_.machine().overheads(s.era);  // throws for an unknown era
    group_ = sim::first_in_a_row(priced_.machine(), s.ranks);
    roots_ = s.roots;
    for (ccl::Rank r = 0; r < ranks() && s.roots.empty(); ++r) roots_.push_back(r);
    if (roots_.front() >= ranks())
      text::refuse("root {}: expected {}", roots_.front(), text::range_text(0, ranks() - 1));
  }

  int run() {
    expect_served();
    for (const std::string& path : {s_.json, s_.csv, s_.plot}) expect_writable(path);
    write_output("", bench_heading(s_, {fmt::format("{} ranks of {} simulated", ranks(), priced_.machine().name())}));
    const std::size_t rows = s_.types.size() * s_.reductions.size() * roots_.size() * s_.sizes.size();
    std::size_t done = 0;
    for (const kernels::DType type : s_.types)
      for (const kernels::Reduction op : s_.reductions)
        for (const ccl::Rank root : roots_)
          for (const std::uint64_t bytes : s_.sizes)
            done += !watch_.interrupted() && row(bytes, type, op, root) ? 1 : 0;
    watch_.clear();
    const std::string missing = done < rows ? fmt::format("{} of {} rows are there", done, rows) : "";
    write_output("", bench_footer(s_, totals_));
    if (!s_.json.empty()) write_output(s_.json, bench_json(s_, results_, missing));
    if (!s_.csv.empty()) write_output(s_.csv, bench_csv(s_, results_));
    if (!s_.plot.empty() && done > 0) write_output(s_.plot, bench_plot(results_));
    if (!missing.empty()) throw std::runtime_error("interrupted: " + missing);
    return 0;
  }

 private:
  ccl::Rank ranks() const { return group_.ranks(); }

  // Reports requests that can't be served before the heading is printed. The first type, reduction and root stand for
  // all.
  void expect_served() {
    const std::uint64_t bytes = s_.sizes.front();
    const auto calls = calls_for(s_, bytes, s_.types.front(), s_.reductions.front(), roots_.front(), ranks());
    const bool both = s_.in_place && has_in_place(s_.op.collective);
    for (int in_place = 0; in_place <= (both ? 1 : 0); ++in_place) {
      const sim::CollectiveQuestion q = question_for(s_.types.front(), in_place != 0, calls);
      const sim::Pricer& pricer = priced_.pricer(q);
      schedule::check(pricer.request({"direct"}));
      configs_for(q, pricer);
    }
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
    const sim::CollectiveAnswer found = answer(question_for(type, in_place, calls), priced_);
    if (watch_.interrupted()) return {};
    BenchResult r = result_of(s_, calls, in_place);
    r.measured = {.us = {sim::in_us(found.price.time)}, .algorithm = sim::text_of(found.config)};
    r.low_us = sim::in_us(found.interval.low), r.high_us = sim::in_us(found.interval.high);
    return r;
  }

  sim::CollectiveQuestion question_for(kernels::DType type, bool in_place, const std::vector<ccl::Call>& calls) {
    sim::CollectiveQuestion q{.settings = {.operation = ccl::operation_of(calls.front(), in_place),
                                           .era = s_.era,
                                           .element = static_cast<double>(size_of(type))},
                              .group = group_,
                              .bytes = static_cast<double>(larger_buffer_bytes(calls)),
                              .interval = s_.interval};
    if (!s_.algorithm.empty()) q.config = schedule::algorithm_config_named(s_.algorithm);
    if (!schedule::uneven(s_.op.collective) || s_.weights.empty()) return q;
    q.blocks.assign(calls.front().counts.begin(), calls.front().counts.end());
    for (std::size_t r = 1; r < calls.size() && schedule::counts_by_pair(s_.op.collective); ++r)
      q.blocks.insert(q.blocks.end(), calls[r].counts.begin(), calls[r].counts.end());
    return q;
  }

  void keep(const BenchResult& r) {
    totals_.busbw_sum += r.busbw_GBps(r.measured.us.front());
    ++totals_.rows;
    results_.push_back(r);
  }

  const BenchSettings& s_;
  PriceProgress watch_;
  sim::PricingSession priced_;
  sim::RankGroup group_;
  std::vector<ccl::Rank> roots_;
  std::vector<BenchResult> results_;
  BenchTotals totals_;
};

}  // namespace

int bench_on(const BenchOptions& o) {
  expect_nothing_to_run(o);
  const BenchSettings s = bench_settings(o);
  if (!o.on.starts_with(simulator)) text::refuse("--on {}: expected sim:MACHINE, as in sim:trn2.48xlarge", o.on);
  return Simulated(s, asked_machine(o.on.substr(simulator.size()), s.what_if, s.era)).run();
}

}  // namespace trellis::tools
