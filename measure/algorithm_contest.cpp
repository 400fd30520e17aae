#include "measure/algorithm_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ccl/config.h"
#include "ccl/plan/call_check.h"
#include "ccl/plan/chunk_layout.h"
#include "ccl/transports/open.h"
#include "ccl/transports/segment/segment.h"
#include "schedule/algorithms/algorithm.h"
#include "schedule/proof/fifo_order.h"

namespace trellis::measure {
namespace {

using ccl::AlgorithmConfig;
using ccl::Rank;
using schedule::Collective;
using Micros = std::chrono::duration<double, std::micro>;

constexpr std::int32_t lanes_tried[] = {1, 2, 4};
constexpr double sample_us = 200;    // target length of one sample
constexpr int most_operations = 64;  // in a sample
constexpr int final_samples = 15;    // of the candidates that are left
constexpr std::size_t finalists = 3;
constexpr double hopeless = 4;  // candidates that take more than this many times as long as the fastest one are dropped
// Up to this size, a candidate's first operations are mostly planning and first touches of the lanes' pages, and any
// single one can be disturbed: several warm up, several are timed, and the first round drops only hopeless candidates.
// Longer operations are much alike, so one of each is enough.
constexpr std::uint64_t small_bytes = 1 << 20;
constexpr int first_operations = 2 * static_cast<int>(ccl::ring_cells), first_samples = 5;

schedule::Request request_for(Collective c, const AlgorithmConfig& config, Rank ranks) {
  return {.operation = {.collective = c}, .dims = {ranks}, .channels = config.channels, .segments = config.segments};
}

// The names of the algorithms, the best known first: of algorithms that make the same schedule, as many do on few
// ranks, the first in this order is kept.
std::vector<std::string> plainest_first() {
  std::vector<std::string> names;
  for (const auto& [name, algorithm] : schedule::algorithms()) names.push_back(name);
  std::ranges::stable_sort(names, std::greater(),
                           [](const std::string& name) { return schedule::algorithm_named(name).renown; });
  return names;
}

bool same(const schedule::Schedule& a, const schedule::Schedule& b) {
  return a.task == b.task &&
         std::ranges::equal(a.programs, b.programs, [](const auto& p, const auto& q) { return schedule::same(p, q); });
}

}  // namespace

std::vector<AlgorithmConfig> candidates(Collective collective, Rank ranks) {
  std::vector<AlgorithmConfig> all;
  std::vector<schedule::Schedule> made;
  for (const std::string& name : plainest_first())
    for (const std::int32_t channels : lanes_tried)
      for (const std::int32_t segments : lanes_tried) {
        const schedule::Algorithm& algorithm = schedule::algorithm_named(name);
        const AlgorithmConfig config{name, channels, segments};
        const schedule::Request request = request_for(collective, config, ranks);
        if (channels > ccl::channel_lanes || !schedule::refusal(algorithm, request).empty()) continue;
        schedule::Schedule s = schedule::make(algorithm, request);
        if (!schedule::passes_in_order(s, ccl::channel_lanes) ||
            std::ranges::any_of(made, [&](const schedule::Schedule& other) { return same(s, other); }))
          continue;
        all.push_back(config);
        made.push_back(std::move(s));
      }
  return all;
}

bool serves_count(const AlgorithmConfig& config, const ccl::Call& call, Rank ranks) {
  const schedule::Algorithm& algorithm = schedule::algorithm_named(config.algorithm);
  return ccl::divides(schedule::task_of(algorithm, request_for(call.operation.collective, config, ranks)),
                      {call.count, {}});
}

double AlgorithmContest::Entrant::median() const {
  if (samples.empty()) return std::numeric_limits<double>::infinity();
  std::vector<double> sorted = samples;
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

AlgorithmContest::AlgorithmContest(BenchContext& bench, const launch::RankContext& context, Collective collective,
                                   kernels::DType type, std::vector<AlgorithmConfig> configs)
    : bench_(bench), collective_(collective), type_(type) {
  for (const AlgorithmConfig& config : configs) {
    ccl::Config settings = bench.work.front()->config();
    settings.algorithm = fmt::format("{}={}", schedule::name(collective), text_of(config));
    const auto name = fmt::format("contest/{}/{}", schedule::name(collective), text_of(config));
    entrants_.push_back({config, ccl::Communicator::create(std::make_shared<ccl::PrefixStore>(context.store, name),
                                                           context.rank, context.ranks, settings)});
  }
}

void AlgorithmContest::prepare(std::uint64_t bytes) {
  BenchSettings s;
  s.op.collective = collective_;
  calls_ = calls_for(s, bytes, type_, kernels::Reduction::sum, 0, bench_.ranks());
  mine_ = calls_[static_cast<std::size_t>(bench_.rank())];
  const ccl::BufferBytes e = ccl::extents_of(mine_, bench_.rank(), bench_.ranks());
  buffers_ = std::make_unique<BenchBuffers>(bench_.control->device(), false, e.input, e.output, 0);
  buffers_->place(mine_, bench_.rank(), bench_.ranks(), false);
  pattern_ = std::make_unique<DataPattern>(calls_, bench_.rank(), 1);
  output_bytes_ = e.output;
  back_to_back_ = bytes <= back_to_back_bytes;
  for (Entrant& one : entrants_) {
    one.samples.clear();
    one.serves = one.alive = serves_count(one.config, mine_, bench_.ranks());
  }
}

// The time of one operation: up to back_to_back_bytes the mean of several that follow each other, beyond it that of one
// whose input has just been written.
double AlgorithmContest::sample(Entrant& one, int operations) {
  if (!back_to_back_) {
    look_through(mine_.output, output_bytes_);
    pattern_->fill(const_cast<void*>(mine_.input));
    operations = 1;
  }
  bench_.control->barrier();
  const auto before = ccl::Clock::now();
  for (int i = 0; i < operations; ++i) one.work->run(mine_);
  return Micros(ccl::Clock::now() - before).count() / operations;
}

void AlgorithmContest::warm_up(const std::vector<Entrant*>& entrants, int operations) {
  for (Entrant* one : entrants)
    for (int i = 0; i < operations; ++i) one->work->run(mine_);
}

void AlgorithmContest::round(const std::vector<Entrant*>& entrants, int samples) {
  std::vector<double> us;
  for (int i = 0; i < samples; ++i)
    for (Entrant* one : entrants) {
      const double about = std::max(one->median(), 1e-3);  // infinite at first, which gives one operation
      us.push_back(sample(*one, std::clamp(static_cast<int>(sample_us / about), 1, most_operations)));
    }
  us = bench_.merged(std::move(us), TimeMerge::slowest);
  for (std::size_t i = 0; i < us.size(); ++i) entrants[i % entrants.size()]->samples.push_back(us[i]);
}

std::vector<CandidateCost> AlgorithmContest::run(std::uint64_t bytes, const AlgorithmConfig* incumbent) {
  prepare(bytes);
  std::vector<Entrant*> alive;
  for (Entrant& one : entrants_)
    if (one.serves) alive.push_back(&one);
  const auto keep = [&](std::size_t most, double slowest) {
    std::ranges::stable_sort(alive, {}, &Entrant::median);
    const double limit = alive.empty() ? 0 : slowest * alive.front()->median();
    for (std::size_t i = 0; i < alive.size(); ++i) alive[i]->alive = i < most && alive[i]->median() <= limit;
    for (Entrant* one : alive)
      if (incumbent != nullptr && one->config == *incumbent) one->alive = true;
    std::erase_if(alive, [](const Entrant* one) { return !one->alive; });
  };
  const bool small = bytes <= small_bytes;
  if (alive.size() > 1) {
    warm_up(alive, small ? first_operations : 1);
    round(alive, small ? first_samples : 1);
    keep(small ? alive.size() : std::max(finalists, (alive.size() + 1) / 2), hopeless);
    for (int samples = 2; alive.size() > finalists && samples <= final_samples; samples *= 2) {
      round(alive, samples);
      keep(std::max(finalists, (alive.size() + 1) / 2), hopeless);
    }
    keep(finalists, hopeless);
    round(alive, final_samples);
  }
  std::vector<CandidateCost> costs;
  for (const Entrant& one : entrants_)
    if (one.serves)
      costs.push_back(
          {one.config, one.samples.empty() ? 0 : one.median(), static_cast<int>(one.samples.size()), one.alive});
  // Candidates that were given up early have fewer samples, and come after the others.
  std::ranges::stable_sort(costs, [](const CandidateCost& a, const CandidateCost& b) {
    return std::pair(!a.final, a.time) < std::pair(!b.final, b.time);
  });
  return costs;
}

}  // namespace trellis::measure
