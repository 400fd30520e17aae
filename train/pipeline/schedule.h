// A pipeline schedule as a value: for each pipeline rank, which micro-batch it computes when, and which messages it
// sends and receives in between. A message completes when sender and receiver have both reached it (rendezvous).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::train {

// A stage's forward pass; its backward pass; or that in two halves: gradients of activations (backward) and of weights.
// Messages carry the result of a forward or backward pass to the stage that needs it.
enum class Action : std::uint8_t {
  forward,
  backward,
  weight,
  send_forward,
  receive_forward,
  send_backward,
  receive_backward
};
std::string_view name(Action);
constexpr bool computes(Action a) { return a <= Action::weight; }

struct Slot {
  Action action = Action::forward;
  std::int32_t micro = 0;
  std::int32_t chunk = 0;  // which of this rank's stages: of a message, the stage here that sends or needs it
  bool operator==(const Slot&) const = default;
};

struct PipelineShape {
  std::int32_t ranks = 1, chunks = 1, micro_batches = 1;
  std::int32_t stages() const { return ranks * chunks; }
  bool operator==(const PipelineShape&) const = default;
};

// The costs of a micro-batch in one stage, in any unit. A schedule that does not split counts backward + weight as one.
struct StageCosts {
  std::int64_t forward = 1, backward = 1, weight = 1;
};

struct PipelineSchedule {
  std::string name;
  PipelineShape shape;
  bool folded = false;  // stages go down the ranks and back up (V); else round and round
  bool split = false;   // weight gradients have slots of their own
  std::vector<std::vector<Slot>> ranks;

  std::int32_t rank_of(std::int32_t stage) const;
  std::int32_t chunk_of(std::int32_t stage) const { return stage / shape.ranks; }
  std::int32_t stage_of(std::int32_t rank, std::int32_t chunk) const;
};

// A rule that makes schedules; a file of this folder registers it.
struct PipelineRule {
  std::string name;
  std::string what;  // a line for people
  // Why the rule can't make a schedule of this shape; empty: it can.
  std::function<std::string(const PipelineShape&)> misfit;
  std::function<PipelineSchedule(const PipelineShape&)> make;
};
struct RegisteredPipeline {
  explicit RegisteredPipeline(PipelineRule);
};
const std::map<std::string, PipelineRule, std::less<>>& pipeline_rules();

// Throws invalid_argument: unknown names with the known ones, shapes that do not fit with the reason.
PipelineSchedule pipeline_schedule(std::string_view name, const PipelineShape&);

// Adds messages to schedules of computations alone: all ranks' slots are put into one order of the whole pipeline, by
// time, with each message right after what it carries was made. As every rank's slots follow that one order, ranks that
// wait for each other cannot wait in a circle.
void add_messages(PipelineSchedule&);

}  // namespace trellis::train
