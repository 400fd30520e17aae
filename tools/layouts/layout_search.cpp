#include "tools/layouts/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "sim/cluster/machine/rank_capacity.h"
#include "sim/cluster/workload/exchange_pricer.h"
#include "sim/hardware/thread_pool.h"
#include "tools/layouts/layout_bounds.h"

namespace trellis::tools {
namespace {

using train::Rank;
using train::StepConfig;

void note(PricedLayout& l, const PricedStep& p) {
  l.time = p.price.time, l.mfu = p.mfu();
  l.memory = static_cast<double>(p.most_memory().bytes), l.fits = p.fits();
  const auto whole = static_cast<double>(p.price.time);
  const auto busiest = std::ranges::min_element(p.price.classes, {}, &sim::StepTimeBreakdown::idle);
  for (std::size_t i = 0; i < p.graph.phases.size(); ++i)
    l.parts[p.graph.phases[i]] = static_cast<double>(busiest->compute[i]) / whole;
  for (std::size_t i = 0; i < p.graph.communicators.size(); ++i)
    l.parts[fmt::format("{} exchanges", p.graph.communicators[i].name)] =
        static_cast<double>(busiest->exposed[i]) / whole;
  l.parts["idle"] = static_cast<double>(busiest->idle) / whole;
}

// The order of layouts: priced before unpriced, fitting before too large, then by time.
bool before(const PricedLayout& a, const PricedLayout& b) {
  if ((a.time > 0) != (b.time > 0)) return a.time > 0;
  if (a.fits != b.fits) return a.fits;
  return a.time > 0 ? a.time < b.time : a.bound < b.bound;
}

}  // namespace

double PricedLayout::exposed() const {
  double sum = 0;
  for (const auto& [what, part] : parts)
    if (what.ends_with("exchanges")) sum += part;
  return sum;
}

double PricedLayout::idle() const {
  const auto found = parts.find("idle");
  return found == parts.end() ? 0 : found->second;
}

const PricedLayout* LayoutSearchResult::best() const {
  return layouts.empty() || layouts[0].time == 0 || !layouts[0].fits ? nullptr : &layouts[0];
}

std::vector<const PricedLayout*> LayoutSearchResult::front() const {
  std::vector<const PricedLayout*> all;
  for (const PricedLayout& l : layouts)
    if (l.time > 0) all.push_back(&l);
  std::ranges::sort(all, {}, &PricedLayout::time);
  std::vector<const PricedLayout*> front;
  for (const PricedLayout* l : all)
    if (front.empty() || l->memory < front.back()->memory) front.push_back(l);
  return front;
}

namespace {

// Finds the bounds of all layouts, with a thread for each processor. False: it was stopped.
bool find_bounds(std::vector<PricedLayout>& layouts, const LayoutBounds& bounds, const SearchControl& control) {
  std::atomic<std::size_t> next = 0, done = 0;
  std::atomic<bool> ended = false;
  std::mutex asking;
  sim::ThreadPool(std::min(sim::processors(), static_cast<int>(layouts.size() + 1))).run([&](int) {
    for (std::size_t i = next++; i < layouts.size() && !ended; i = next++) {
      const LayoutBound bound = bounds.of(layouts[i].layout);
      layouts[i].bound = bound.time, layouts[i].memory = bound.memory;
      const std::lock_guard lock(asking);
      if (control.stopped(++done, 2 * layouts.size())) ended = true;
    }
  });
  return !ended;
}

// Prices layouts in each order of axes, the lowest bound first, until the next bound is no better than the best time.
class Pricing {
 public:
  Pricing(const StepConfig& config, const sim::Machine& machine, const sim::StepOptions& options,
          const SearchControl& control, LayoutSearchResult& search)
      : config_(config), machine_(machine), options_(options), control_(control), search_(search) {}

  void run() {
    const std::size_t count = search_.layouts.size();
    for (std::size_t i = 0; i < count && !search_.stopped; ++i) {
      if ((search_.stopped = control_.stopped(count + i, 2 * count))) break;
      PricedLayout& l = search_.layouts[i];
      if (l.bound >= best_ || l.memory > search_.memory_of_rank) break;
      const train::StrategyConfig& s = l.layout.strategy;
      const bool two =
          s.pipeline > 1 && s.tensor * s.pipeline < machine_.ranks() && machine_.ranks() > sim::ranks_of_host(machine_);
      PricedLayout other = l;
      price(l, AxisOrder::data_first);
      if (!two || search_.stopped) continue;
      price(other, AxisOrder::pipeline_first);
      if (other.time > 0) otherwise_.push_back(std::move(other));
    }
    search_.layouts.insert(search_.layouts.end(), otherwise_.begin(), otherwise_.end());
  }

 private:
  void price(PricedLayout& l, AxisOrder order) {
    l.layout.order = order;
    if (control_.known(l)) {
      ++search_.resumed;
    } else {
      const StepPricingOptions ways{.check = false, .order = order};
      const PricedStep priced =
          PreparedStep(with(config_, l.layout), machine_.ranks(), machine_, options_, ways).price();
      if ((search_.stopped = priced.price.time == sim::forever)) return;
      note(l, priced);
      control_.found(l);
    }
    ++search_.priced;
    if (l.fits) best_ = std::min(best_, l.time);
  }

  const StepConfig& config_;
  const sim::Machine& machine_;
  const sim::StepOptions& options_;
  const SearchControl& control_;
  LayoutSearchResult& search_;
  sim::Time best_ = sim::forever;
  std::vector<PricedLayout> otherwise_;  // the same layouts in the other order of axes
};

}  // namespace

LayoutSearchResult search_layouts(const StepConfig& config, const sim::Machine& machine, const sim::StepOptions& given,
                                  const SearchControl& control) {
  sim::StepOptions options = given;
  options.book = std::make_shared<sim::ExchangeTimeCache>();
  LayoutSearchResult search{.memory_of_rank = sim::rank_memory(machine)};
  PossibleLayouts possible = layouts_of(config, machine.ranks(), sim::ranks_of_host(machine), control.most_context);
  for (StepLayout& l : possible.layouts) search.layouts.push_back({.layout = std::move(l)});
  if (search.layouts.empty()) search.refusal = std::move(possible.refusal);
  search.stopped = !find_bounds(search.layouts, LayoutBounds(config, machine, options), control);
  if (search.stopped) return search;
  const auto is_too_large = [&](const PricedLayout& l) { return l.memory > search.memory_of_rank; };
  std::ranges::stable_sort(search.layouts, [&](const PricedLayout& a, const PricedLayout& b) {
    if (is_too_large(a) != is_too_large(b)) return is_too_large(b);
    return is_too_large(a) ? a.memory < b.memory : a.bound < b.bound;
  });
  search.too_large = static_cast<std::size_t>(std::ranges::count_if(search.layouts, is_too_large));
  Pricing(config, machine, options, control, search).run();
  std::ranges::stable_sort(search.layouts, before);
  if (search.best() != nullptr && !search.stopped) {
    // Layouts are priced without proofs, so the best one is proved here.
    const StepLayout& first = search.layouts[0].layout;
    const PreparedStep proved(with(config, first), machine.ranks(), machine, options, {.order = first.order});
    search.spread = proved.factors().spread;
  }
  return search;
}

std::vector<std::string> reversals(const StepConfig& config, const sim::Machine& machine, const sim::StepOptions& given,
                                   const StepLayout& first, const std::vector<StepLayout>& others) {
  sim::StepOptions options = given;
  options.book = std::make_shared<sim::ExchangeTimeCache>();
  std::vector<PreparedStep> steps;
  std::vector<const StepLayout*> layouts{&first};
  for (const StepLayout& l : others) layouts.push_back(&l);
  for (const StepLayout* l : layouts)
    steps.emplace_back(with(config, *l), machine.ranks(), machine, options,
                       StepPricingOptions{.check = false, .order = l->order});
  std::vector<std::string> found;
  const auto compare = [&](const std::string& key, double value, const auto& change) {
    std::vector<double> times;
    for (PreparedStep& s : steps) {
      sim::StepFactors f = s.factors();
      change(f, value);
      times.push_back(static_cast<double>(s.time(f)));
    }
    const auto least = std::ranges::min_element(times) - times.begin();
    if (least != 0)
      found.push_back(fmt::format("{} = {:.3g}: {} by {:.1f}%", key, value,
                                  words_of(*layouts[static_cast<std::size_t>(least)]),
                                  100 * (times[0] / times[static_cast<std::size_t>(least)] - 1)));
  };
  for (const auto& [key, figure] : machine.spec().figures.all()) {
    constexpr std::string_view exposed = "step.exposed.";
    if (key.starts_with(exposed))
      for (const double value : {figure.low, figure.high})
        compare(key, value, [&](sim::StepFactors& f, double v) {
          for (auto& [name, part] : f.exposed)
            if (sim::exposed_figure_of(name, machine) == key) part = v;
        });
    if (key == "step.hosts" && machine.ranks() > sim::ranks_of_host(machine))
      for (const double value : {figure.low, figure.high})
        compare(key, value, [](sim::StepFactors& f, double v) { f.hosts = 1 + v; });
  }
  return found;
}

}  // namespace trellis::tools
