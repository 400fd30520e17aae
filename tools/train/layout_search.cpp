#include "tools/train/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

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

// The longest computation of a class in one micro-batch, in each slot of a full pipeline.
sim::Time bound_of(const Config& config, const sim::Machine& machine, const sim::StepOptions& options) {
  const train::Derived derived = train::derive(config, machine.ranks());
  Config one = config;
  const auto stages = static_cast<std::size_t>(config.strategy.virtual_pipeline > 1 ? config.strategy.pipeline : 1);
  one.global_batch_size = stages * config.micro_batch_size * static_cast<std::size_t>(derived.mesh.data);
  const sim::Time each = computation_of(one, machine.ranks(), machine, options) / static_cast<sim::Time>(stages);
  return each * static_cast<sim::Time>(derived.micro_batches);
}

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
  for (PricedLayout& l : search.layouts) {
    if ((search.stopped = stopped(done++, steps))) return search;
    l.bound = bound_of(with(config, l.layout), machine, options);
  }
  std::ranges::stable_sort(search.layouts, {}, &PricedLayout::bound);
  sim::Time best = sim::forever;
  for (PricedLayout& l : search.layouts) {
    if ((search.stopped = stopped(done++, steps))) break;
    if (l.bound >= best) break;
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
