#include "tools/bench_on.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "ccl/check.h"
#include "ccl/selector.h"
#include "sim/choice.h"
#include "tools/bench_buffers.h"
#include "tools/bench_result.h"
#include "tools/machine_typed.h"
#include "tools/output.h"

namespace trellis::tools {
namespace {

constexpr std::string_view simulator = "sim:";

// The rows of one benchmark on one machine.
class Simulated {
 public:
  Simulated(const BenchSettings& s, const sim::Machine& machine)
      : s_(s), machine_(machine), group_(sim::first_ranks(machine, s.ranks)) {}

  int run() {
    for (const std::string& path : {s_.json, s_.csv, s_.plot}) expect_writable(path);
    write_output("", bench_heading(s_, {fmt::format("{} ranks of {} simulated", s_.ranks, machine_.name())}));
    for (const kernels::DType type : s_.types)
      for (const kernels::Reduction op : s_.reductions)
        for (const std::uint64_t bytes : s_.sizes) row(bytes, type, op);
    write_output("", bench_footer(s_, totals_));
    if (!s_.json.empty()) write_output(s_.json, bench_json(s_, results_));
    if (!s_.csv.empty()) write_output(s_.csv, bench_csv(s_, results_));
    if (!s_.plot.empty()) write_output(s_.plot, bench_plot(results_));
    return 0;
  }

 private:
  using Key = std::pair<bool, kernels::DType>;

  void row(std::uint64_t bytes, kernels::DType type, kernels::Reduction op) {
    const bool both = s_.in_place && has_in_place(s_.op.collective);
    const BenchResult out = one(bytes, type, op, false), in = one(bytes, type, op, both);
    keep(out);
    if (both) keep(in);
    write_output("", bench_row(s_, &out, both ? &in : nullptr));
  }

  BenchResult one(std::uint64_t bytes, kernels::DType type, kernels::Reduction op, bool in_place) {
    const ccl::Rank root = s_.roots.empty() ? 0 : s_.roots.front();
    const auto calls = calls_for(s_, bytes, type, op, root, s_.ranks);
    sim::Pricer& pricer = pricer_for(type, in_place, root, calls.front());
    const auto moved = larger_buffer_bytes(calls);
    const bool weighted = schedule::uneven(s_.op.collective) && !s_.weights.empty();
    const auto best = weighted ? fastest_of(pricer, calls, static_cast<double>(moved))
                               : sim::fastest(pricer, ways(pricer), static_cast<double>(moved));
    if (!best) throw std::invalid_argument(fmt::format("no algorithm serves {} there", s_.op.word));
    const bool rooted = schedule::rooted(s_.op.collective) || s_.op.collective == schedule::Collective::send_recv;
    BenchResult r{.collective = s_.op.collective,
                  .op = s_.op.word,
                  .ranks = s_.ranks,
                  .bytes = moved,
                  .count = calls.front().count,
                  .type = type,
                  .reduction = op,
                  .root = rooted ? root : -1,
                  .in_place = in_place,
                  .measured = {.us = {sim::in_us(best->time)}, .algorithm = sim::text_of(best->way)}};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const ccl::Extents e = ccl::extents_of(calls[i], static_cast<ccl::Rank>(i), s_.ranks);
      r.input_bytes += e.input, r.output_bytes += e.output;
    }
    return r;
  }

  // Where blocks differ, a pattern of each way for just these.
  std::optional<sim::Cost> fastest_of(const sim::Pricer& pricer, const std::vector<ccl::Call>& calls,
                                      double bytes) const {
    std::vector<std::int64_t> blocks(calls.front().counts.begin(), calls.front().counts.end());
    for (std::size_t r = 1; r < calls.size() && s_.op.collective == schedule::Collective::all_to_all_v; ++r)
      blocks.insert(blocks.end(), calls[r].counts.begin(), calls[r].counts.end());
    const sim::PriceOptions options{
        .bytes = bytes, .element = static_cast<double>(size_of(calls.front().type)), .members = group_.members};
    std::optional<sim::Cost> best;
    for (const sim::Way& way : ways(pricer)) {
      const auto schedule = make(schedule::algorithm_named(way.algorithm), pricer.request(way));
      const sim::Time time = sim::price(sim::Pattern(schedule, blocks), machine_, options).time;
      if (!best || time < best->time) best = sim::Cost{way, bytes, time};
    }
    return best;
  }

  sim::Pricer& pricer_for(kernels::DType type, bool in_place, ccl::Rank root, const ccl::Call& call) {
    std::unique_ptr<sim::Pricer>& kept = pricers_[{in_place, type}];
    if (!kept)
      kept = std::make_unique<sim::Pricer>(machine_, group_,
                                           sim::Pricer::Settings{.collective = s_.op.collective,
                                                                 .element = static_cast<double>(size_of(type)),
                                                                 .root = root,
                                                                 .pairs = {call.pairs.begin(), call.pairs.end()},
                                                                 .in_place = in_place});
    return *kept;
  }

  std::vector<sim::Way> ways(const sim::Pricer& pricer) const {
    if (s_.algorithm.empty()) return sim::ways_of(pricer, {}, {1, 2, 4}, {1});
    const sim::Way way = schedule::way_named(s_.algorithm);
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
  const sim::Machine& machine_;
  sim::Group group_;
  std::map<Key, std::unique_ptr<sim::Pricer>> pricers_;
  std::vector<BenchResult> results_;
  BenchTotals totals_;
};

}  // namespace

int bench_on(const std::string& place, BenchSettings s) {
  if (!place.starts_with(simulator))
    throw std::invalid_argument(fmt::format("--on {}: expected sim:MACHINE, as in sim:trn2.48xlarge", place));
  const sim::Machine machine(typed_machine(place.substr(simulator.size())));
  if (s.ranks == 0) s.ranks = machine.ranks();
  return Simulated(s, machine).run();
}

}  // namespace trellis::tools
