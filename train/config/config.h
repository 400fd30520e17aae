// What a training job is: model, parallel layout, precision, optimizer, data sizes. The fields are those of NxD
// Training's YAML; config/apply_config_keys.h has their names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config/model_config.h"
#include "train/config/optimizer_config.h"
#include "train/mesh/mesh.h"

namespace trellis::train {

// fp32: everything. bf16_sr: parameters in bf16, rounded stochastically, no masters. bf16: the same, rounded to
// nearest. mixed: bf16 parameters beside fp32 masters. mixed_sr: computed as mixed; only hardware also rounds
// stochastically. autocast: fp32 parameters; products in bf16, softmax, norms and losses in fp32, sums in the wider
// type. fp8, mxfp8: as autocast, and factors of layers' projections are rounded to 8 bits, with a scale for each tensor
// (fp8) or for each 32 elements (mxfp8).
enum class Precision : std::uint8_t { fp32, bf16_sr, bf16, mixed, mixed_sr, autocast, fp8, mxfp8 };
std::string_view name(Precision);
constexpr bool casts(Precision p) { return p >= Precision::autocast; }
constexpr bool has_masters(Precision p) { return p == Precision::mixed || p == Precision::mixed_sr; }

enum class Recompute : std::uint8_t { none, selective, full };  // selective: only the attention core is recomputed
std::string_view name(Recompute);

struct StrategyConfig {
  Rank tensor = 1, pipeline = 1, virtual_pipeline = 1, context = 1, expert = 1;
  bool sequence_parallel = false;
  bool zero1 = false;
  Rank kv_replicator = 0;         // 0: what the heads need
  std::string schedule = "";      // a name of pipeline_schedules(); empty: 1f1b, or interleaved
  std::vector<std::size_t> cuts;  // the last layer of each stage but the last; empty: even parts
  bool ring_attention = true;     // keys and values travel around the context axis as a ring; false: they are gathered

  Rank ranks_of_model() const { return tensor * context * pipeline; }  // the ranks of one copy of the model
};

// Low-rank adapters: W + alpha / rank x B A for the projections named; nothing else is trained.
struct LoraConfig {
  std::size_t rank = 0;  // 0: none
  double alpha = 16;
  std::vector<std::string> targets = {"q_proj", "v_proj"};  // last words of projections' names
};

struct StepConfig {
  std::string name = "run";
  std::uint64_t seed = 1234;
  ModelConfig model;
  ExpertsConfig experts;
  StrategyConfig strategy;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  LoraConfig lora;
  Precision precision = Precision::fp32;
  Recompute recompute = Recompute::none;
  std::vector<std::size_t> recompute_layers;  // for Recompute::full; empty: all
  std::size_t micro_batch_size = 1, global_batch_size = 1, seq_length = 32;
  Wiring wiring = Wiring::plain;
  bool bf16_sums = false;        // sums over the tensor axis are in the activations' type, not in f32
  bool flash_attention = false;  // on the accelerator; its prices and memory depend on it, nothing here
  bool cut_attention = false;    // tokens attend only to their own document of a sample

  // Positions of a sequence that a rank has.
  std::size_t positions_here() const { return seq_length / static_cast<std::size_t>(strategy.context); }
  // Sequences of a micro-batch on all data-parallel ranks together; 0 if `world` is no multiple of ranks_of_model().
  std::size_t sequences_together(Rank world) const;
};

// Values that follow from a configuration and a number of ranks. Throws invalid_argument that names the field, its
// value and what was expected.
struct Derived {
  MeshShape mesh;
  std::size_t micro_batches = 1;
  std::vector<std::size_t> stage_of_layer;  // of pipeline x virtual stages
  Rank kv_copies = 1;
};
Derived derive(const StepConfig&, Rank world);

// Words for the context axis, to be appended to those for the other axes: ", context 2 (a ring of keys and values)".
// Empty without a context axis.
std::string context_words(const StepConfig&);

// Divides layers among stages as evenly as possible: what is left over goes to the last stages, one layer each. Returns
// how many layers each stage has.
std::vector<std::size_t> auto_partition(std::size_t layers, std::size_t stages);

}  // namespace trellis::train
