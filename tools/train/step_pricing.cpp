#include "tools/train/step_pricing.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "sim/cluster/machine/rank_capacity.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"
#include "train/whole/model_flops.h"

namespace trellis::tools {

using train::Rank;
using train::StepConfig;

struct PreparedStep::Laid {
  train::CompactStep step;
  std::optional<sim::StepPricer> pricer;
  bool by_programs = false;
};

namespace {

// Lays out every micro-batch, as `trellis train` would run it.
train::CompactStep whole_step(const StepConfig& c, Rank world) {
  const std::vector<train::RankStep> classes = train::classes_of(c, world);
  train::CompactStep out{.graph = train::graph_of(classes),
                         .shape = classes[0].mesh.shape(),
                         .micro_batches = classes[0].micro_batches,
                         .laid_out = classes[0].micro_batches,
                         .fault = train::check_classes(c, world, classes)};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    out.memory.push_back(schedule::peak_memory(out.graph, out.graph.classes[i]));
    out.flops += train::model_flops(classes[i]) * static_cast<double>(out.graph.classes[i].ranks.size());
  }
  return out;
}

// Moves ranks to other places on the machine: the tensor axis varies fastest, then pipeline, then data.
void put_pipeline_first(schedule::ExecutionGraph& graph, const train::MeshShape& shape) {
  const Rank inner = shape.tensor * shape.context;
  const auto place = [&](Rank r) {
    const Rank within = r % inner, data = r / inner % shape.data, pipeline = r / inner / shape.data;
    return within + inner * (pipeline + shape.pipeline * data);
  };
  for (schedule::GraphCommunicator& c : graph.communicators)
    for (auto& group : c.groups)
      for (Rank& r : group) r = place(r);
  for (schedule::RankClass& c : graph.classes) {
    for (Rank& r : c.ranks) r = place(r);
    std::ranges::sort(c.ranks);
  }
}

}  // namespace

PreparedStep::PreparedStep(const StepConfig& config, Rank world, const sim::Machine& machine,
                           const sim::StepOptions& options, const StepPricingOptions& ways)
    : config_(config), machine_(machine), laid_(std::make_shared<Laid>()) {
  laid_->step = ways.whole ? whole_step(config, world) : train::compact_step(config, world, ways.check);
  if (!laid_->step.fault.empty()) throw std::logic_error(laid_->step.fault);
  if (ways.order == AxisOrder::pipeline_first) put_pipeline_first(laid_->step.graph, laid_->step.shape);
  laid_->by_programs = options.programs != nullptr;
  laid_->pricer.emplace(laid_->step.graph, machine, options, std::move(laid_->step.stretches));
  factors_ = sim::factors_of(laid_->step.graph, machine, options);
}

sim::Time PreparedStep::time(const sim::StepFactors& factors) { return laid_->pricer->price(factors).time; }

sim::NoisyTimes PreparedStep::noisy(const sim::NoiseOptions& runs) {
  return sim::draw_noise(runs, [&](std::uint64_t seed) { return laid_->pricer->noisy(factors_, seed).time; });
}

double PreparedStep::flops() const { return laid_->step.flops; }

PricedStep PreparedStep::price() {
  const train::CompactStep& step = laid_->step;
  PricedStep p{.config = config_,
               .shape = step.shape,
               .graph = step.graph,
               .price = laid_->pricer->price(factors_),
               .micro_batches = step.micro_batches,
               .laid_out = step.laid_out,
               .memory = step.memory,
               .memory_of_rank = sim::rank_memory(machine_),
               .flops = step.flops,
               .peak = sim::rank_flops(machine_) * step.graph.ranks,
               .by_programs = laid_->by_programs};
  p.kinds = laid_->pricer->kinds(factors_, p.busiest());
  return p;
}

StepBoundInputs needs_of(const StepConfig& config, Rank world, const sim::Machine& machine,
                         const sim::StepOptions& options) {
  const train::Derived derived = train::derive(config, world);
  // Micro-batches beyond `enough` take no more memory, except for their inputs.
  const auto stages = static_cast<std::size_t>(config.strategy.pipeline);
  const std::size_t enough = std::max<std::size_t>(2 * stages, 4);
  StepBoundInputs needs{.micro_batches = derived.micro_batches, .laid_out = std::min(enough, derived.micro_batches)};
  StepConfig few = config;
  few.global_batch_size = needs.laid_out * config.micro_batch_size * static_cast<std::size_t>(derived.mesh.data);
  train::CompactStep step = train::compact_step(few, world, false);
  for (const schedule::PeakMemory& m : step.memory) needs.memory = std::max(needs.memory, static_cast<double>(m.bytes));
  sim::StepPricer pricer(step.graph, machine, options, std::move(step.stretches));
  needs.work = pricer.work(sim::factors_of(step.graph, machine, options));
  return needs;
}

bool PricedStep::fits() const { return static_cast<double>(most_memory().bytes) <= memory_of_rank; }

std::uint32_t PricedStep::busiest() const {
  const auto most = std::ranges::max_element(price.classes, {}, [](const sim::StepTimeBreakdown& t) {
    return std::accumulate(t.compute.begin(), t.compute.end(), sim::Time{0});
  });
  return static_cast<std::uint32_t>(most - price.classes.begin());
}

const schedule::PeakMemory& PricedStep::most_memory() const {
  return *std::ranges::max_element(memory, {}, &schedule::PeakMemory::bytes);
}

PricedStep price_of(const StepConfig& config, Rank world, const sim::Machine& machine, const sim::StepOptions& options,
                    const StepPricingOptions& ways) {
  return PreparedStep(config, world, machine, options, ways).price();
}

}  // namespace trellis::tools
