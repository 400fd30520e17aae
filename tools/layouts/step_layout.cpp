#include "tools/layouts/step_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace trellis::tools {
namespace {

using train::Rank;
using train::Recompute;
using train::StepConfig;

constexpr std::size_t most_micro_batch = 4;
constexpr Rank most_chunks = 4;

class Listing {
 public:
  Listing(const StepConfig& config, Rank world, Rank host, Rank most_context)
      : config_(config), world_(world), host_(host), most_context_(most_context) {}

  PossibleLayouts run() {
    for (Rank tensor = 1; tensor <= host_ && tensor <= static_cast<Rank>(config_.model.num_attention_heads);
         tensor *= 2)
      for (Rank pipeline = 1; pipeline <= static_cast<Rank>(config_.model.num_layers); pipeline *= 2)
        for (Rank context = 1; context <= most_context_; context *= 2)
          if (world_ % (tensor * pipeline * context) == 0) add_batches(tensor, pipeline, context);
    return std::move(found_);
  }

 private:
  void add_batches(Rank tensor, Rank pipeline, Rank context) {
    const Rank replicas = world_ / (tensor * pipeline);  // ranks with the same weights: data and context together
    for (std::size_t micro = 1; micro <= most_micro_batch; micro *= 2)
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
        for (const bool zero1 : {true, false})
          for (Rank expert = 1; expert <= std::min<Rank>(replicas, most_expert_ranks()); expert *= 2) {
            if (replicas == 1 && zero1) continue;
            StepLayout l{.strategy = config_.strategy, .recompute = recompute, .micro_batch = micro};
            l.strategy.tensor = tensor, l.strategy.pipeline = pipeline, l.strategy.expert = expert;
            l.strategy.context = context;
            l.strategy.sequence_parallel = tensor > 1, l.strategy.zero1 = zero1, l.strategy.cuts.clear();
            add_pipelines(l);
          }
  }

  Rank most_expert_ranks() const { return std::max<Rank>(1, static_cast<Rank>(config_.experts.experts)); }

  void add_pipelines(const StepLayout& l) {
    if (l.strategy.pipeline == 1) return add(l, 1, "");
    for (Rank chunks = 1; chunks <= most_chunks; chunks *= 2)
      for (const auto& [name, rule] : train::pipeline_rules()) add(l, chunks, name);
  }

  void add(StepLayout l, Rank chunks, const std::string& schedule) {
    l.strategy.virtual_pipeline = chunks, l.strategy.schedule = schedule;
    try {
      const StepConfig c = with(config_, l);
      const train::Derived derived = train::derive(c, world_);
      const train::PipelineShape shape{l.strategy.pipeline, chunks, static_cast<std::int32_t>(derived.micro_batches)};
      const std::string misfit = schedule.empty() ? "" : train::pipeline_rules().find(schedule)->second.misfit(shape);
      if (misfit.empty())
        found_.layouts.push_back(std::move(l));
      else
        leave_out(l, misfit);
    } catch (const std::invalid_argument& e) {
      leave_out(l, e.what());
    }
  }

  void leave_out(const StepLayout& l, const std::string& why) {
    if (found_.refusal.empty()) found_.refusal = fmt::format("{}: {}", words_of(l), why);
  }

  const StepConfig& config_;
  Rank world_, host_, most_context_;
  PossibleLayouts found_;
};

}  // namespace

std::string words_of(const StepLayout& l) {
  const train::StrategyConfig& s = l.strategy;
  return fmt::format("T={} P={} V={}{}{}{} micro-batch {}{}{}{}{}", s.tensor, s.pipeline, s.virtual_pipeline,
                     s.expert > 1 ? fmt::format(" E={}", s.expert) : "",
                     s.context > 1 ? fmt::format(" C={}", s.context) : "", s.schedule.empty() ? "" : " " + s.schedule,
                     l.micro_batch, s.sequence_parallel ? " SP" : "", s.zero1 ? " ZeRO-1" : "",
                     l.recompute == Recompute::none ? "" : fmt::format(" {}", train::name(l.recompute)),
                     l.order == AxisOrder::data_first ? "" : ", pipeline before data");
}

StepConfig with(StepConfig c, const StepLayout& l) {
  c.strategy = l.strategy, c.recompute = l.recompute, c.micro_batch_size = l.micro_batch;
  return c;
}

PossibleLayouts layouts_of(const StepConfig& config, Rank world, Rank host, Rank most_context) {
  return Listing(config, world, host, most_context).run();
}

}  // namespace trellis::tools
