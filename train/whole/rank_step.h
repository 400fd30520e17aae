// The whole step of one rank: model, pipeline, gradient exchange and optimizer, laid out as one program.
#pragma once

#include <vector>

#include "train/config/config.h"
#include "train/pipeline/schedule.h"
#include "train/step/program.h"
#include "train/update/optimizer_state.h"

namespace trellis::train {

// What a slot of the pipeline's schedule became: operations from `first` to before `end`.
struct SlotOperations {
  Slot slot;
  std::size_t first = 0, end = 0;
};

struct RankStep {
  StepConfig config;
  Mesh mesh;
  Place place;
  StepProgram program;
  Parameters parameters;
  std::vector<OptimizerState> states;
  // For each micro-batch, i32, positions x batch: the first positions of all sequences, then the second ones, and so
  // on; of a context axis the rank's own positions. Empty on stages that do not read them.
  std::vector<TensorId> tokens, labels;
  std::vector<TensorId> types, next;  // models of pairs: a type for each token; `next` for each sequence
  std::vector<TensorId> counted;      // with a context axis: one i32, how many labels count on all its ranks
  std::vector<TensorId> starts;       // with cut attention: the first position that each token sees
  TensorId loss = no_tensor;          // one f64: the mean over all micro-batches and data-parallel ranks, on every rank
  TensorId norm = no_tensor;          // one f64: of the gradients, before clipping; no_tensor where clipping is off
  TensorId logits = no_tensor;        // generation, on ranks of the last stage: f32, batch x vocabulary
  Rank kv_copies = 1;
  bool tied = false;  // first and last stage hold copies of a weight
  std::size_t micro_batches = 1;
  std::vector<SlotOperations> slots;  // of a training step, in order
  std::vector<StageCosts> costs;      // FLOPs of a micro-batch's passes, by chunk
  double model_flops = 0;             // Writer::model_flops of all micro-batches
};

// evaluate: forward passes and the loss alone, without dropout; no parameter has a gradient. generate: forward passes
// alone, of seq_length tokens behind those of earlier runs, of which attention keeps keys and values; StepInputs::step
// says how many these are, and the result is the logits after the last token.
enum class StepPurpose : std::uint8_t { train, evaluate, generate };

// Throws invalid_argument where the configuration does not fit. `cached`: the most positions of a generation. `order`:
// another schedule of as many micro-batches; null: schedule_of the configuration.
RankStep lay_out(const StepConfig&, Rank world, Rank rank, StepPurpose = StepPurpose::train, std::size_t cached = 0,
                 const PipelineSchedule* order = nullptr);

// The schedule that the configuration names or, without a name, 1F1B or its interleaved form.
PipelineSchedule schedule_of(const StepConfig&, const Derived&);

}  // namespace trellis::train
