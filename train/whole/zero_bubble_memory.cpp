#include "train/whole/zero_bubble_memory.h"

#include <fmt/format.h>

#include <stdexcept>

#include "schedule/graph/peak_memory.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"

namespace trellis::train {
namespace {

struct Most {
  std::size_t bytes = 0;
  Rank stage = 0;  // its pipeline rank
};

Most most_of(const std::vector<RankStep>& classes, const schedule::ExecutionGraph& graph) {
  Most most;
  for (std::size_t c = 0; c < classes.size(); ++c)
    if (const std::size_t bytes = schedule::peak_memory(graph, graph.classes[c]).bytes; bytes > most.bytes)
      most = {bytes, classes[c].place.pipeline};
  return most;
}

}  // namespace

std::string undone_recomputation(const StepConfig& config, Rank world) {
  const PipelineSchedule schedule = schedule_of(config, derive(config, world));
  if (!schedule.split || config.recompute == Recompute::none) return "";
  return fmt::format(
      "{}: {} recomputation saves little: what a backward pass computes again stays until the weights' gradients, "
      "which wait",
      schedule.name, name(config.recompute));
}

std::string split_memory(const StepConfig& config, Rank world, const std::vector<RankStep>& classes,
                         const schedule::ExecutionGraph& graph) {
  const PipelineSchedule schedule = schedule_of(config, derive(config, world));
  if (!schedule.split) return "";
  StepConfig plain = config;
  plain.strategy.schedule = "1f1b", plain.strategy.virtual_pipeline = 1;
  if (schedule.shape.chunks > 1) plain.strategy.cuts.clear();
  const std::vector<RankStep> others = classes_of(plain, world);
  const Most here = most_of(classes, graph), there = most_of(others, graph_of(others));
  if (here.bytes <= there.bytes) return "";
  std::string text = fmt::format(
      "{} holds up to {:.1f} MB on a rank (stage {}), and 1f1b of the same layers {:.1f} MB (stage {}): activations "
      "stay until the weights' gradients, which wait",
      schedule.name, static_cast<double>(here.bytes) / 1e6, here.stage, static_cast<double>(there.bytes) / 1e6,
      there.stage);
  if (const std::string undone = undone_recomputation(config, world); !undone.empty()) text += "\n" + undone;
  return text;
}

}  // namespace trellis::train
