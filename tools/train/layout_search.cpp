#include "tools/train/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace trellis::tools {
namespace {

using train::Config;
using train::Rank;
using train::Recompute;

constexpr std::size_t most_micro_batch = 4;
constexpr Rank most_chunks = 4;

Config with(Config c, const StepLayout& l) {
  c.strategy = l.strategy, c.recompute = l.recompute, c.micro_batch_size = l.micro_batch;
  return c;
}

class Listing {
 public:
  Listing(const Config& config, Rank world, Rank host) : config_(config), world_(world), host_(host) {}

  std::vector<StepLayout> run() {
    for (Rank tensor = 1; tensor <= host_ && tensor <= static_cast<Rank>(config_.model.num_attention_heads);
         tensor *= 2)
      for (Rank pipeline = 1; pipeline <= static_cast<Rank>(config_.model.num_layers); pipeline *= 2)
        if (world_ % (tensor * pipeline) == 0) add_batches(tensor, pipeline);
    return std::move(all_);
  }

 private:
  void add_batches(Rank tensor, Rank pipeline) {
    const Rank data = world_ / (tensor * pipeline);
    for (std::size_t micro = 1; micro <= most_micro_batch; micro *= 2)
      for (Rank chunks = 1; chunks <= (pipeline > 1 ? most_chunks : 1); chunks *= 2)
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
          for (const bool zero1 : {true, false})
            if (data > 1 || !zero1) add(tensor, pipeline, chunks, micro, recompute, zero1);
  }

  void add(Rank tensor, Rank pipeline, Rank chunks, std::size_t micro, Recompute recompute, bool zero1) {
    StepLayout l{.strategy = config_.strategy, .recompute = recompute, .micro_batch = micro};
    l.strategy.tensor = tensor, l.strategy.pipeline = pipeline, l.strategy.virtual_pipeline = chunks;
    l.strategy.sequence_parallel = tensor > 1, l.strategy.zero1 = zero1;
    l.strategy.schedule.clear(), l.strategy.cuts.clear();
    try {
      const Config c = with(config_, l);
      train::schedule_of(c, train::derive(c, world_));
      all_.push_back(std::move(l));
    } catch (const std::invalid_argument&) {
      // The model's numbers do not divide so.
    }
  }

  const Config& config_;
  Rank world_, host_;
  std::vector<StepLayout> all_;
};

// Lower bounds of layouts' times, from a step of one or two micro-batches. Layouts that differ only in chunks share it.
class Bounds {
 public:
  Bounds(const Config& config, const sim::Machine& machine, const sim::StepOptions& options)
      : config_(config), machine_(machine), options_(options) {}

  void find(PricedLayout& l) {
    StepLayout plain = l.layout;
    plain.strategy.virtual_pipeline = 1;
    const Config config = with(config_, plain);
    const train::Derived derived = train::derive(config, machine_.ranks());
    const auto pipeline = static_cast<std::size_t>(plain.strategy.pipeline);
    const std::size_t held = std::min(pipeline, derived.micro_batches);
    const auto [at, is_new] = known_.try_emplace(words_of(plain));
    if (is_new) at->second = {needs_of(config, derived, 1), held > 1 ? needs_of(config, derived, 2) : StepNeeds{}};
    const auto& [one, two] = at->second;

    const auto batches = static_cast<double>(derived.micro_batches);
    const auto [shortest, longest] = std::ranges::minmax(one.computation);
    // Before the last stage begins, and after it has ended, the others have a forward and a backward pass. Where stages
    // have several chunks, their layers may lie otherwise, and the mean is what the longest has at least.
    const double filling = static_cast<double>(shortest) * (batches + static_cast<double>(pipeline - 1));
    const double mean =
        static_cast<double>(std::accumulate(one.computation.begin(), one.computation.end(), sim::Time{})) /
        static_cast<double>(one.computation.size());
    l.bound = static_cast<sim::Time>(l.layout.strategy.virtual_pipeline > 1
                                         ? mean * batches
                                         : std::max(static_cast<double>(longest) * batches, filling));
    // The first stage holds as many micro-batches as there are stages, and each takes as much as the second one.
    l.memory = std::ranges::max(one.memory);
    if (held > 1)
      l.memory = std::max(l.memory, one.memory[0] + (two.memory[0] - one.memory[0]) * static_cast<double>(held - 1));
  }

 private:
  StepNeeds needs_of(Config config, const train::Derived& derived, std::size_t micro_batches) const {
    config.global_batch_size = micro_batches * config.micro_batch_size * static_cast<std::size_t>(derived.mesh.data);
    return tools::needs_of(config, machine_.ranks(), machine_, options_);
  }

  const Config& config_;
  const sim::Machine& machine_;
  const sim::StepOptions& options_;
  std::map<std::string, std::pair<StepNeeds, StepNeeds>> known_;  // with one micro-batch, and with two
};

void note(PricedLayout& l, const PricedStep& p) {
  l.time = p.time, l.mfu = p.mfu();
  l.memory = static_cast<double>(p.most_memory().bytes), l.fits = p.fits();
  const auto busiest = std::ranges::min_element(p.spent, {}, &sim::ClassTime::idle);
  sim::Time exposed = 0;
  for (sim::Time t : busiest->exposed) exposed += t;
  l.exposed = static_cast<double>(exposed) / static_cast<double>(p.time);
  l.bubble = static_cast<double>(busiest->idle) / static_cast<double>(p.time);
}

// Priced before unpriced, what fits before what does not, then by time.
bool before(const PricedLayout& a, const PricedLayout& b) {
  if ((a.time > 0) != (b.time > 0)) return a.time > 0;
  if (a.fits != b.fits) return a.fits;
  return a.time > 0 ? a.time < b.time : a.bound < b.bound;
}

}  // namespace

std::string words_of(const StepLayout& l) {
  const train::StrategyConfig& s = l.strategy;
  return fmt::format("T={} P={} V={} micro-batch {}{}{}{}", s.tensor, s.pipeline, s.virtual_pipeline, l.micro_batch,
                     s.sequence_parallel ? " SP" : "", s.zero1 ? " ZeRO-1" : "",
                     l.recompute == Recompute::none ? "" : fmt::format(" {}", train::name(l.recompute)));
}

const PricedLayout* LayoutSearch::best() const {
  return layouts.empty() || layouts[0].time == 0 || !layouts[0].fits ? nullptr : &layouts[0];
}

std::vector<const PricedLayout*> LayoutSearch::front() const {
  std::vector<const PricedLayout*> all;
  for (const PricedLayout& l : layouts)
    if (l.time > 0) all.push_back(&l);
  std::ranges::sort(all, {}, &PricedLayout::time);
  std::vector<const PricedLayout*> front;
  for (const PricedLayout* l : all)
    if (front.empty() || l->memory < front.back()->memory) front.push_back(l);
  return front;
}

LayoutSearch search_layouts(const Config& config, const sim::Machine& machine, const sim::StepOptions& options,
                            const std::function<bool(std::size_t, std::size_t)>& stopped) {
  LayoutSearch search;
  search.memory_of_rank = machine.spec().figures.bytes("hbm.bytes") / machine.cores();
  for (StepLayout& l : Listing(config, machine.ranks(), sim::ranks_of_host(machine)).run())
    search.layouts.push_back({.layout = std::move(l)});
  const std::size_t steps = 2 * search.layouts.size();
  std::size_t done = 0;
  Bounds bounds(config, machine, options);
  for (PricedLayout& l : search.layouts) {
    if ((search.stopped = stopped(done++, steps))) return search;
    bounds.find(l);
  }
  const auto is_too_large = [&](const PricedLayout& l) { return l.memory > search.memory_of_rank; };
  std::ranges::stable_sort(search.layouts, [&](const PricedLayout& a, const PricedLayout& b) {
    if (is_too_large(a) != is_too_large(b)) return is_too_large(b);
    return is_too_large(a) ? a.memory < b.memory : a.bound < b.bound;
  });
  search.too_large = static_cast<std::size_t>(std::ranges::count_if(search.layouts, is_too_large));
  sim::Time best = sim::forever;
  for (PricedLayout& l : search.layouts) {
    if ((search.stopped = stopped(done++, steps))) break;
    if (l.bound >= best || is_too_large(l)) break;
    const PricedStep priced = price_of(with(config, l.layout), machine.ranks(), machine, options);
    if ((search.stopped = priced.time == sim::forever)) break;
    note(l, priced);
    ++search.priced;
    if (l.fits) best = std::min(best, l.time);
  }
  std::ranges::stable_sort(search.layouts, before);
  return search;
}

}  // namespace trellis::tools
