#include "tools/tune/measured_rules.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "ccl/config.h"
#include "launch/run_on_ranks.h"
#include "measure/selection_rules.h"
#include "net/descriptor.h"
#include "schedule/algorithms/size_range_tuner.h"

namespace trellis::tools {

using namespace launch;
using namespace measure;
using schedule::Collective;
namespace {

// The costs of one collective at each size, and what the library selects today. When the user interrupts, those of the
// sizes that are done.
struct Measured {
  std::vector<SizeCosts> costs;
  std::vector<std::string> selected;
};
Measured measured(const RankContext& context, Collective c, kernels::DType type,
                  const std::vector<ccl::AlgorithmConfig>& choices, const std::vector<std::uint64_t>& sizes,
                  Progress& progress, const InterruptPoller& interrupts) {
  std::optional<EndedBySignals> before_sizes(std::in_place);
  const BenchSettings s = settings_for(c);
  BenchContext bench(s, context);
  Measured all;
  try {
    AlgorithmContest contest(bench, context, c, type, choices);
    schedule::SizeRangeTuner<CandidateCost> tuner;
    before_sizes.reset();
    const InterruptWatch watch(interrupts, [&] { bench.abort(); });
    for (const std::uint64_t bytes : sizes) {
      progress.next(fmt::format("{} on {} ranks, {}", schedule::name(c), context.ranks, bytes_text(bytes)));
      all.costs.push_back({bytes, contest.run(bytes, tuner.held())});
      tuner.chosen(all.costs.back().costs);
      all.selected.push_back(contest.selected());
    }
  } catch (...) {
    bench.abort();
    if (!interrupts.asked()) throw;
    all.costs.resize(all.selected.size());
  }
  progress.clear();
  return all;
}

// How much faster the fastest is than what the library selects today, as a comment of the table. Selections that were
// not candidates don't count.
std::string gain_in_words(Collective c, ccl::Rank ranks, const Measured& all) {
  double logs = 0, most = 0;
  int sizes = 0;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < all.costs.size(); ++i) {
    const auto& costs = all.costs[i].costs;
    const auto today =
        std::ranges::find_if(costs, [&](const CandidateCost& cost) { return text_of(cost.config) == all.selected[i]; });
    if (today == costs.end() || today->samples == 0) continue;
    const double gain = std::max(1.0, today->time / costs.front().time);
    logs += std::log(gain);
    ++sizes;
    if (gain > most) most = gain, at = all.costs[i].bytes;
  }
  if (sizes == 0) return fmt::format("# {} on {} ranks: not compared with today's selection", schedule::name(c), ranks);
  std::string text = fmt::format("# {} on {} ranks: {:.2f} times as fast as today's selection", schedule::name(c),
                                 ranks, std::exp(logs / sizes));
  if (sizes > 1) text += fmt::format(" in the mean of {} sizes, and {:.2f} times at {}", sizes, most, bytes_text(at));
  return text;
}

}  // namespace

BenchSettings settings_for(Collective c) {
  BenchSettings s;
  s.op.collective = c;
  s.timeout = ccl::config_from_environment().timeout;
  return s;
}

MeasuredRules measured_rules(Collective c, ccl::Rank ranks, kernels::DType type,
                             const std::vector<std::uint64_t>& sizes, Progress& progress,
                             const InterruptPoller& interrupts) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "a pipe");
  const net::Descriptor from(ends[0]);
  net::Descriptor to(ends[1]);
  const std::vector<ccl::AlgorithmConfig> choices = candidates(c, ranks);
  const auto measure_and_send = [&](const RankContext& context) {
    Progress silent(0, false);
    const Measured all = measured(context, c, type, choices, sizes, context.rank == 0 ? progress : silent, interrupts);
    if (context.rank != 0 || all.costs.empty()) return 0;
    ccl::SelectionTable found;
    for (const ccl::SelectionRule& rule : rules_for(c, ranks, all.costs)) found.add(rule);
    const std::string text = gain_in_words(c, ranks, all) + "\n" + found.text();  // less than a pipe holds
    return write(to.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  };
  try {
    if (run_on_ranks(
            {.ranks = ranks, .timeout = settings_for(c).timeout, .interrupted = [&] { return interrupts.asked(); }},
            measure_and_send) != 0)
      throw std::runtime_error(fmt::format("{}: its rules did not arrive", schedule::name(c)));
  } catch (const std::exception&) {
    if (!interrupts.asked()) throw;
  }
  progress.skip(sizes.size());
  to = net::Descriptor();
  std::string text(std::size_t{1} << 16, '\0');
  const ssize_t size = read(from.number(), text.data(), text.size());
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  if (text.empty() && interrupts.asked()) return {};
  return {text.substr(0, text.find('\n')), ccl::SelectionTable::read(text).rules()};
}

}  // namespace trellis::tools
