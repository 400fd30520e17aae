#include "tools/layouts/layout_bounds.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

namespace trellis::tools {
namespace {

using train::Action;
using train::Rank;
using train::StepConfig;

constexpr std::size_t few = 4;       // micro-batches that are laid out
constexpr std::size_t actions = 3;   // that compute: forward, backward, weight
constexpr Rank ends_and_middle = 4;  // ranks of a pipeline that has every kind of stage

// Whether all layers are alike, and nothing else tells the ranks of a stage apart.
bool is_even(const StepConfig& c) {
  const bool experts_everywhere = c.experts.frequency == 1 && c.experts.first_layer == 0;
  return (c.experts.experts == 0 || experts_everywhere) && c.recompute_layers.empty() && c.strategy.cuts.empty();
}

}  // namespace

class LayoutBounds::Known {
 public:
  // The times and bytes of a rank or a stage. Each further layer adds the same to an amount; to an amount that is the
  // largest of several, it adds at least that.
  struct Amounts {
    enum What : std::uint8_t { all, each, update, lasting, optimizer, input, first_slot };
    std::array<double, first_slot + actions* 3 * 2> values = {};

    // The index in `values` of the bytes that an action leaves allocated (`after`), or has allocated at its peak.
    // `which`: 0 for the first micro-batch, 1 for one in between, 2 for the last.
    static std::size_t slot(Action a, std::size_t which, bool after) {
      return first_slot + (static_cast<std::size_t>(a) * 3 + which) * 2 + (after ? 1 : 0);
    }
    double operator[](std::size_t i) const { return values[i]; }
    void add(const Amounts& other, double times) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += other.values[i] * times;
    }
  };

  // The amounts of a stage with one layer and with two, from which those with any number follow.
  struct GrowingStage {
    std::array<Amounts, 2> with = {};
    Amounts of(std::size_t layers) const {
      Amounts found = with[0];
      found.add(with[1], static_cast<double>(layers) - 1);
      found.add(with[0], 1 - static_cast<double>(layers));
      return found;
    }
  };

  enum Stage : std::uint8_t { first, middle, last, whole };

  // The amounts for each kind of stage in a layout's pipeline. kinds() returns none where its stages are not of these
  // kinds.
  using Kinds = std::map<Stage, GrowingStage>;

  const std::optional<Kinds>& kinds(const StepLayout& l, const StepConfig& config, const sim::Machine& machine,
                                    const sim::StepOptions& options) {
    const Rank of_stage = l.strategy.tensor * l.strategy.context;
    const Rank ranks = l.strategy.pipeline == 1                              ? 1
                       : machine.ranks() % (of_stage * ends_and_middle) == 0 ? ends_and_middle
                                                                             : 2;
    const bool split = l.strategy.schedule.starts_with("zb");
    Entry* entry = nullptr;
    {
      const std::lock_guard lock(mutex_);
      entry = &entries_[{l.strategy.tensor, l.strategy.context, l.strategy.expert, l.micro_batch, l.recompute, ranks,
                         split}];
    }
    std::call_once(entry->once, [&] {
      // The pipeline laid out here may be shorter or longer than l's, so it has another number of data-parallel ranks,
      // which the expert-parallel size need not divide.
      if (machine.ranks() / l.strategy.tensor / ranks % l.strategy.expert != 0) return;
      StepLayout small = l;
      small.strategy.pipeline = ranks, small.strategy.virtual_pipeline = 1, small.strategy.zero1 = false;
      small.strategy.schedule = ranks == 1 ? "" : split ? "zb-h1" : "1f1b";
      Kinds found;
      bool all = true;
      for (std::size_t layers = 1; layers <= 2 && all; ++layers)
        all = find(found, layers, with(config, small), machine, options);
      if (all) entry->kinds = std::move(found);
    });
    return entry->kinds;
  }

  // The configuration's schedule of so many micro-batches; made once and kept.
  const train::PipelineSchedule& schedule(const StepConfig& config, std::size_t micro_batches) {
    const train::StrategyConfig& s = config.strategy;
    const train::PipelineShape shape{s.pipeline, s.virtual_pipeline, static_cast<std::int32_t>(micro_batches)};
    const std::lock_guard lock(mutex_);
    auto& found = schedules_[{s.schedule, s.pipeline, s.virtual_pipeline, micro_batches}];
    if (!found) found = train::pipeline_schedule(s.schedule.empty() ? "1f1b" : s.schedule, shape);
    return *found;
  }

 private:
  struct Entry {
    std::once_flag once;
    std::optional<Kinds> kinds;
  };

  static bool find(Kinds& found, std::size_t layers, StepConfig config, const sim::Machine& machine,
                   const sim::StepOptions& options) {
    const Rank world = machine.ranks(), pipeline = config.strategy.pipeline;
    config.model.num_layers = layers * static_cast<std::size_t>(pipeline);
    const auto data = static_cast<std::size_t>(world / config.strategy.ranks_of_model());
    config.global_batch_size = few * config.micro_batch_size * data;
    train::CompactStep step = train::compact_step(config, world, false);
    if (step.graph.classes.size() != static_cast<std::size_t>(pipeline) ||
        step.stages.size() != step.graph.classes.size())
      return false;
    sim::StepPricer pricer(step.graph, machine, options, std::move(step.stretches));
    const std::vector<sim::RankClassLocalTime> work = pricer.work(sim::factors_of(step.graph, machine, options));
    if (work.empty()) return false;
    const auto add = [&](Stage stage, std::size_t c) {
      Amounts& a = found[stage].with[layers - 1];
      const train::StageBytes& bytes = step.stages[c];
      a.values[Amounts::all] = static_cast<double>(work[c].all),
      a.values[Amounts::each] = static_cast<double>(work[c].each);
      a.values[Amounts::update] = static_cast<double>(work[c].update);
      a.values[Amounts::lasting] = static_cast<double>(bytes.lasting);
      a.values[Amounts::optimizer] = static_cast<double>(bytes.optimizer);
      a.values[Amounts::input] = static_cast<double>(bytes.input);
      for (const auto& [action, slots] : bytes.slots)
        for (std::size_t i = 0; train::computes(action) && i < slots.size(); ++i) {
          a.values[Amounts::slot(action, i, false)] = static_cast<double>(slots[i].most);
          a.values[Amounts::slot(action, i, true)] = static_cast<double>(slots[i].after);
        }
    };
    if (pipeline == 1) return add(whole, 0), true;
    add(first, 0), add(last, step.graph.classes.size() - 1);
    if (pipeline > 2) add(middle, 1);
    return true;
  }

  std::mutex mutex_;
  std::map<std::tuple<Rank, Rank, Rank, std::size_t, train::Recompute, Rank, bool>, Entry> entries_;
  std::map<std::tuple<std::string, Rank, Rank, std::size_t>, std::optional<train::PipelineSchedule>> schedules_;
};

namespace {

// The bounds on a rank's time and memory, computed from the amounts of work and memory of its stages.
class RankBound {
 public:
  using Known = LayoutBounds::Known;
  using Amounts = Known::Amounts;
  using Kinds = Known::Kinds;
  RankBound(const Kinds& kinds, const train::Derived& derived, const train::PipelineSchedule& schedule, Rank rank)
      : schedule_(schedule), rank_(rank), replicas_(derived.mesh.data * derived.mesh.context) {
    const std::int32_t stages = schedule.shape.stages();
    for (std::int32_t c = 0; c < schedule.shape.chunks; ++c) {
      const std::int32_t stage = schedule.stage_of(rank, c);
      const auto layers =
          static_cast<std::size_t>(std::ranges::count(derived.stage_of_layer, static_cast<std::size_t>(stage)));
      const Known::Stage kind = stages == 1           ? Known::whole
                                : stage == 0          ? Known::first
                                : stage + 1 == stages ? Known::last
                                                      : Known::middle;
      chunks_.push_back(kinds.at(kind).of(layers));
      // Each stage's amounts include what a rank has only once, whatever its number of stages. It counts with the first
      // stage; from the further ones it is subtracted, as the amounts of a stage without layers.
      all_.add(chunks_.back(), 1);
      if (c > 0) all_.add(kinds.at(Known::middle).of(0), -1);
    }
  }

  double all(std::size_t micro_batches, bool zero1) const {
    const double update = zero1 ? all_[Amounts::update] * (1 - 1.0 / replicas_) : 0;
    return all_[Amounts::all] - update + static_cast<double>(micro_batches - few) * all_[Amounts::each];
  }
  double each() const { return all_[Amounts::each]; }

  double memory(std::size_t micro_batches, bool zero1) const {
    const double optimizer = zero1 ? all_[Amounts::optimizer] * (1 - 1.0 / replicas_) : 0;
    double now = all_[Amounts::lasting] - optimizer + static_cast<double>(micro_batches - few) * all_[Amounts::input];
    double most = now;
    const std::int32_t end = schedule_.shape.micro_batches - 1;
    for (const train::Slot& slot : schedule_.ranks[static_cast<std::size_t>(rank_)]) {
      if (!train::computes(slot.action)) continue;
      const Amounts& chunk = chunks_[static_cast<std::size_t>(slot.chunk)];
      const std::size_t which = slot.micro == 0 ? 0 : slot.micro == end ? 2 : 1;
      most = std::max(most, now + chunk[Amounts::slot(slot.action, which, false)]);
      now += chunk[Amounts::slot(slot.action, which, true)];
    }
    return most;
  }

 private:
  const train::PipelineSchedule& schedule_;
  Rank rank_;
  double replicas_;
  std::vector<Amounts> chunks_;
  Amounts all_;
};

// The bound on a step's time from the times of its pipeline's ranks.
class BoundOfStages {
 public:
  void add(double all, double each) {
    longest_ = std::max(longest_, all);
    shortest_ = any_ ? std::min(shortest_, all) : all, least_ = any_ ? std::min(least_, each) : each;
    any_ = true;
  }

  // While the pipeline fills and drains, a rank idles for a forward and a backward pass of each other stage. Schedules
  // with separate slots for weights' gradients (zb) fill that time with them.
  sim::Time time(const StepConfig& config) const {
    const auto pipeline = static_cast<double>(config.strategy.pipeline);
    const bool filled = config.strategy.schedule.starts_with("zb");
    const double filling = filled ? 0 : (pipeline - 1) * least_ / static_cast<double>(config.strategy.virtual_pipeline);
    return static_cast<sim::Time>(std::max(longest_, shortest_ + filling));
  }

 private:
  bool any_ = false;
  double longest_ = 0, shortest_ = 0, least_ = 0;
};

// Lays out the step itself, with few micro-batches.
LayoutBound bound_of_step(const StepConfig& config, const sim::Machine& machine, const sim::StepOptions& options) {
  const StepBoundInputs needs = needs_of(config, machine.ranks(), machine, options);
  const auto more = static_cast<double>(needs.micro_batches - needs.laid_out);
  BoundOfStages bound;
  for (const sim::RankClassLocalTime& w : needs.work)
    bound.add(static_cast<double>(w.all) + more * static_cast<double>(w.each), static_cast<double>(w.each));
  return {bound.time(config), needs.memory};
}

}  // namespace

LayoutBounds::LayoutBounds(const StepConfig& config, const sim::Machine& machine, const sim::StepOptions& options)
    : config_(config), machine_(machine), options_(options), known_(std::make_unique<Known>()) {}
LayoutBounds::~LayoutBounds() = default;

LayoutBound LayoutBounds::of(const StepLayout& l) const {
  const StepConfig config = with(config_, l);
  const train::Derived derived = train::derive(config, machine_.ranks());
  const std::size_t micro_batches = derived.micro_batches;
  const auto stages = static_cast<std::size_t>(config.strategy.pipeline * config.strategy.virtual_pipeline);
  if (!is_even(config) || micro_batches < few || derived.stage_of_layer.size() < stages)
    return bound_of_step(config, machine_, options_);
  const auto& kinds = known_->kinds(l, config_, machine_, options_);
  if (!kinds || (stages > 2 && !kinds->contains(Known::middle))) return bound_of_step(config, machine_, options_);
  const auto pipeline = static_cast<std::size_t>(config.strategy.pipeline);
  const std::size_t filling = std::min(micro_batches, std::max(few, 2 * pipeline));
  const train::PipelineSchedule& schedule = known_->schedule(config, filling);
  BoundOfStages bound;
  LayoutBound found;
  for (Rank rank = 0; rank < config.strategy.pipeline; ++rank) {
    const RankBound own(*kinds, derived, schedule, rank);
    bound.add(own.all(micro_batches, l.strategy.zero1), own.each());
    found.memory = std::max(found.memory, own.memory(micro_batches, l.strategy.zero1));
  }
  found.time = bound.time(config);
  if (schedule.folded) {  // two neighbouring stages are on one rank, and need no messages between them
    const std::size_t rows = config.positions_here() * config.micro_batch_size /
                             static_cast<std::size_t>(config.strategy.sequence_parallel ? config.strategy.tensor : 1);
    found.memory -= 2.0 * sizeof(float) * static_cast<double>(rows * config.model.hidden_size);
  }
  return found;
}

}  // namespace trellis::tools
