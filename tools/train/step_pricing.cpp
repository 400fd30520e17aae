#include "tools/train/step_pricing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "schedule/graph/merge.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"
#include "train/whole/utilization.h"

namespace trellis::tools {
namespace {

using train::Config;
using train::Rank;

// Micro-batches after which each further `unit` adds the same time: a pipeline is full, and a round of it repeats.
struct Repeats {
  std::size_t first = 0, unit = 1;
};

Repeats repeats_of(const Config& c) {
  const auto stages = static_cast<std::size_t>(c.strategy.pipeline);
  const auto chunks = static_cast<std::size_t>(c.strategy.virtual_pipeline);
  const std::string& name = c.strategy.schedule;
  if (!name.empty() && name != "1f1b" && name != "gpipe" && name != "interleaved") return {};
  return chunks > 1 ? Repeats{.first = 3 * stages, .unit = stages} : Repeats{.first = 2 * stages + 1, .unit = 1};
}

sim::Time extended(sim::Time shorter, sim::Time longer, double rounds) {
  return shorter + static_cast<sim::Time>(static_cast<double>(longer - shorter) * rounds);
}

sim::ClassTime extended(const sim::ClassTime& a, const sim::ClassTime& b, double rounds) {
  sim::ClassTime out = a;
  const auto each = [&](std::vector<sim::Time>& to, const std::vector<sim::Time>& longer) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = extended(to[i], longer[i], rounds);
  };
  each(out.compute, b.compute), each(out.exposed, b.exposed), each(out.engines, b.engines);
  out.idle = extended(a.idle, b.idle, rounds);
  return out;
}

// Each micro-batch's input lasts from step to step.
void extend(schedule::PeakMemory& m, const schedule::PeakMemory& longer, double rounds) {
  const auto more = [&](std::size_t a, std::size_t b) {
    return a + static_cast<std::size_t>(static_cast<double>(b - a) * rounds);
  };
  m.bytes = more(m.bytes, longer.bytes);
  for (std::size_t k = 0; k < m.by_category.size(); ++k)
    m.by_category[k] = more(m.by_category[k], longer.by_category[k]);
}

double peak_of(const sim::Machine& machine, Rank world) {
  const sim::Figures& f = machine.spec().figures;
  const double core = 2 * f.number("tensor.rows") * f.number("tensor.columns") * f.frequency("tensor.clock") /
                      f.cycles("tensor.row.16bit");
  return core * f.number("cores") / machine.cores() * world;
}

// The step with so many micro-batches.
Config with(Config c, const train::Derived& d, std::size_t micro_batches) {
  c.global_batch_size = micro_batches * c.micro_batch_size * static_cast<std::size_t>(d.mesh.data);
  return c;
}

}  // namespace

struct StepOnMachine::Laid {
  Laid(const Config& c, Rank world, const sim::Machine& machine, const sim::StepOptions& options) {
    const std::vector<train::Step> classes = train::classes_of(c, world);
    shape = classes[0].mesh.shape(), micro_batches = classes[0].micro_batches;
    graph = train::graph_of(classes);
    if (std::string fault = train::check_classes(c, world, classes); !fault.empty()) throw std::logic_error(fault);
    for (const schedule::RankClass& of : graph.classes) memory.push_back(schedule::peak_memory(graph, of));
    for (std::size_t i = 0; i < classes.size(); ++i)
      flops += train::model_flops(classes[i]) * static_cast<double>(graph.classes[i].ranks.size());
    graph = schedule::merged(graph);
    pricer.emplace(graph, machine, options);
  }

  train::MeshShape shape;
  std::size_t micro_batches = 1;
  double flops = 0;  // of all ranks
  schedule::ExecutionGraph graph;
  std::vector<schedule::PeakMemory> memory;
  std::optional<sim::StepPricer> pricer;
};

StepOnMachine::StepOnMachine(const Config& config, Rank world, const sim::Machine& machine,
                             const sim::StepOptions& options, bool whole)
    : config_(config), machine_(machine) {
  const train::Derived derived = train::derive(config, world);
  const Repeats repeats = repeats_of(config);
  micro_batches_ = derived.micro_batches;
  const std::size_t longer = repeats.first + repeats.unit;
  const bool folds =
      !whole && repeats.first > 0 && longer < micro_batches_ && (micro_batches_ - repeats.first) % repeats.unit == 0;
  const auto lay = [&](std::size_t micro_batches) {
    laid_.push_back(std::make_shared<Laid>(with(config, derived, micro_batches), world, machine, options));
  };
  lay(folds ? repeats.first : micro_batches_);
  if (folds) {
    lay(longer);
    rounds_ = static_cast<double>(micro_batches_ - repeats.first) / static_cast<double>(repeats.unit);
  }
  learn();
  factors_ = sim::factors_of(laid_[0]->graph, machine, options);
}

// The longer step has the same exchanges.
void StepOnMachine::learn() {
  if (laid_.size() < 2) return;
  laid_[0]->pricer->price({});
  laid_[1]->pricer->learn(*laid_[0]->pricer);
}

sim::Time StepOnMachine::time(const sim::StepFactors& factors) {
  const sim::Time first = laid_[0]->pricer->price(factors).time;
  if (laid_.size() == 1 || first == sim::forever) return first;
  return extended(first, laid_[1]->pricer->price(factors).time, rounds_);
}

double StepOnMachine::flops() const {
  const Laid& laid = *laid_[0];
  return laid.flops * static_cast<double>(micro_batches_) / static_cast<double>(laid.micro_batches);
}

PricedStep StepOnMachine::price() {
  Laid& laid = *laid_[0];
  PricedStep p{.config = config_,
               .shape = laid.shape,
               .graph = laid.graph,
               .price = laid.pricer->price(factors_),
               .micro_batches = micro_batches_,
               .priced = laid.micro_batches,
               .memory = laid.memory};
  p.time = p.price.time, p.spent = p.price.classes;
  if (p.time == sim::forever) return p;
  if (laid_.size() > 1) {
    const sim::StepPrice next = laid_[1]->pricer->price(factors_);
    if (next.time == sim::forever) return p.time = sim::forever, p;
    p.time = extended(p.time, next.time, rounds_);
    for (std::size_t i = 0; i < p.spent.size(); ++i)
      p.spent[i] = extended(p.price.classes[i], next.classes[i], rounds_),
      extend(p.memory[i], laid_[1]->memory[i], rounds_);
  }
  p.low = static_cast<sim::Time>(static_cast<double>(p.time) / factors_.spread);
  p.high = static_cast<sim::Time>(static_cast<double>(p.time) * factors_.spread);
  p.peak = peak_of(machine_, p.graph.ranks);
  p.memory_of_rank = machine_.spec().figures.bytes("hbm.bytes") / machine_.cores();
  p.flops = flops();
  return p;
}

bool PricedStep::fits() const { return static_cast<double>(most_memory().bytes) <= memory_of_rank; }

const schedule::PeakMemory& PricedStep::most_memory() const {
  return *std::ranges::max_element(memory, {}, &schedule::PeakMemory::bytes);
}

StepNeeds needs_of(const Config& config, Rank world, const sim::Machine& machine, const sim::StepOptions& options) {
  const schedule::ExecutionGraph graph = train::graph_of(train::classes_of(config, world));
  StepNeeds needs{.computation = sim::computation_of(schedule::merged(graph), machine, options)};
  for (const schedule::RankClass& of : graph.classes)
    needs.memory.push_back(static_cast<double>(schedule::peak_memory(graph, of).bytes));
  return needs;
}

PricedStep price_of(const Config& config, Rank world, const sim::Machine& machine, const sim::StepOptions& options,
                    bool whole) {
  return StepOnMachine(config, world, machine, options, whole).price();
}

}  // namespace trellis::tools
