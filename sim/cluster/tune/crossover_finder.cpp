#include "sim/cluster/tune/crossover_finder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "schedule/algorithms/size_range_tuner.h"

namespace trellis::sim {
namespace {

constexpr int most_depth = 6;  // depth of recursion when looking for third configs between two samples

// Rounds `at` down to whole bytes, and keeps it between the two sizes.
double between(double low, double high, double at) { return std::clamp(std::floor(at), low + 1, high - 1); }

double middle(double low, double high) { return high > 4 * low ? std::sqrt(low * high) : (low + high) / 2; }

}  // namespace

CrossoverFinder::CrossoverFinder(const Machine& machine, const SweepSpec& sweep, const std::vector<ConfigCost>& samples,
                                 SweepControl control)
    : asked_(machine.spec()),
      sweep_(sweep),
      samples_(samples),
      control_{.threads = control.threads, .stopped = std::move(control.stopped)} {
  for (const ConfigCost& c : samples) known_[{c.config, c.bytes}] = c.time;
  std::ranges::sort(sweep_.sizes);
}

CrossoverFinder::Contender CrossoverFinder::contender(const AlgorithmConfig& config) const {
  return family_ ? family_of(config) : text_of(config);
}

ConfigCost CrossoverFinder::price(const Contender& who, double bytes) {
  ConfigCost best{.bytes = bytes, .time = forever};
  for (const AlgorithmConfig& config : configs_.at(who)) {
    const auto found = known_.find({config, bytes});
    const Time time = found != known_.end() ? found->second
                                            : answer(question_for(sweep_, config, bytes, best.time), asked_).price.time;
    if (time < best.time) known_[{config, bytes}] = time, best.config = config, best.time = time;
  }
  return best;
}

ConfigCost CrossoverFinder::fastest(double bytes, Time limit) {
  SweepSpec one = sweep_;
  one.sizes = {bytes}, one.wanted = 1, one.limit = limit;
  ConfigCost best{.bytes = bytes, .time = forever};
  for (const ConfigCost& c : sweep(asked_.machine(), one, control_)) {
    known_[{c.config, c.bytes}] = c.time;
    if (std::pair(c.time, c.config) < std::pair(best.time, best.config)) best = c;
  }
  return best.time > limit ? ConfigCost{.bytes = bytes, .time = forever} : best;
}

// The least size at which `after` is cheaper, as far as the prices in between tell. Uses false position with a
// decreasing weight for the end that stays, as prices are nearly linear in the size. Bisects now and then, as prices
// have steps.
double CrossoverFinder::border(const Side& before, const Side& after) {
  const auto gap = [&](double bytes) {
    return static_cast<double>(price(after.who, bytes).time) - static_cast<double>(price(before.who, bytes).time);
  };
  double low = before.bytes, high = after.bytes, at_low = gap(low), at_high = gap(high);
  if (at_low < 0) return low;
  if (at_high >= 0) return high;
  bool came_down = false;
  for (int step = 1; high - low > 1 && !stopped(); ++step) {
    const bool halve = step % 3 == 0;
    const double x = between(low, high, halve ? middle(low, high) : low + (high - low) * at_low / (at_low - at_high));
    const double at = gap(x);
    const bool again = step > 1 && came_down == (at < 0);
    came_down = at < 0;
    (came_down ? high : low) = x;
    (came_down ? at_high : at_low) = at;
    if (again) (came_down ? at_low : at_high) /= 2;
  }
  for (const Side* side : {&before, &after})
    for (const AlgorithmConfig& config : configs_.at(side->who)) {
      const CollectiveQuestion q = question_for(sweep_, config, 0);
      asked_.pricer(q).forget(*q.config);
    }
  return high;
}

void CrossoverFinder::take(const Contender& who, double bytes) {
  const ConfigCost cost = price(who, bytes);
  while (!regions_.empty() && regions_.back().from >= bytes) regions_.pop_back();
  if (!regions_.empty() && contender(regions_.back().config) == who) return;
  regions_.push_back({bytes, cost.config, cost.time, bytes});
}

// Finds the border of two configs, and searches there for a third one that is cheaper than both. If prices are linear,
// a config that is cheaper than both at any size in between is so where the two cross.
void CrossoverFinder::change(const Side& before, const Side& after, int depth) {
  const double at = border(before, after);
  const ConfigCost old = price(before.who, at), fresh = price(after.who, at);
  const auto limit = static_cast<Time>(static_cast<double>(fresh.time) * (1 - schedule::worth_changing));
  const bool looks = depth < most_depth && at > before.bytes && at < after.bytes && !stopped();
  const ConfigCost third = looks ? fastest(at, limit) : ConfigCost{.time = forever};
  if (third.time == forever) {
    priced_.push_back(old), priced_.push_back(fresh);
    return take(after.who, at);
  }
  const Side other{at, contender(third.config)};
  change(before, other, depth + 1);
  change(other, after, depth + 1);
}

// Looks for a third config between two samples that lie far apart and have the same winner.
void CrossoverFinder::look_between(const Side& low, const Side& high) {
  constexpr double near = 2;
  if (high.bytes <= near * low.bytes || stopped()) return;
  const double at = between(low.bytes, high.bytes, middle(low.bytes, high.bytes));
  const auto limit = static_cast<Time>(static_cast<double>(price(low.who, at).time) * (1 - schedule::worth_changing));
  const ConfigCost third = fastest(at, limit);
  if (third.time == forever) return;
  const Side other{at, contender(third.config)};
  change(low, other, 1);
  change(other, high, 1);
}

std::vector<BestConfigRange> CrossoverFinder::regions(bool family) {
  family_ = family;
  configs_.clear(), regions_.clear(), priced_.clear();
  for (const AlgorithmConfig& config : sweep_.configs) configs_[contender(config)].push_back(config);
  std::vector<BestConfigRange> sampled = regions_of(samples_, family);
  if (sampled.empty()) return sampled;
  regions_ = {sampled.front()};
  const std::vector<double>& sizes = sweep_.sizes;
  std::size_t region = 0, first = 0;  // indices of the region, and of the sample at which it begins
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const Contender held = contender(sampled[region].config);
    if (region + 1 == sampled.size() || sampled[region + 1].at > sizes[i]) {
      look_between({sizes[i - 1], held}, {sizes[i], held});
      continue;
    }
    const Contender next = contender(sampled[++region].config);
    // If the change was not worth it at first, the next config may already have been cheaper at earlier samples: goes
    // back to the last one at which it was not.
    std::size_t low = i - 1;
    while (low > first && price(next, sizes[low]).time < price(held, sizes[low]).time) --low;
    change({sizes[low], held}, {sizes[low + 1], next}, 0);
    first = i;
  }
  return std::move(regions_);
}

}  // namespace trellis::sim
