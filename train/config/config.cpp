#include "train/config/config.h"

#include <fmt/format.h>

#include <cmath>

#include "text/refuse.h"
#include "text/words.h"
#include "train/config/apply_config_keys.h"
#include "train/config/experts/experts_check.h"

namespace trellis::train {
namespace {

template <class... T>
void expect(bool right, fmt::format_string<T...> format, T&&... values) {
  if (!right) text::refuse(format, std::forward<T>(values)...);
}

// Limits that keep a step small enough to be laid out: a pass through a layer takes some 45 KB.
constexpr std::size_t most_micro_batches = 65'536, most_passes = 262'144;

// Checks that a rank's step has no more micro-batches and passes through layers than can be laid out.
void check_passes(const StepConfig& c, std::size_t micro_batches) {
  expect(micro_batches <= most_micro_batches,
         "data.global_batch_size is {}, in {} micro-batches: expected at most {} of them", c.global_batch_size,
         micro_batches, most_micro_batches);
  const auto pipeline = static_cast<std::size_t>(c.strategy.pipeline);
  const std::size_t layers = (c.model.num_layers + pipeline - 1) / pipeline;
  expect(layers * micro_batches <= most_passes,
         "model.num_layers is {}, {} of them on a rank, and data.global_batch_size {} is {} micro-batches: expected at "
         "most {} passes through layers in a step",
         c.model.num_layers, layers, c.global_batch_size, micro_batches, most_passes);
}

void check_longrope(const ModelConfig& m) {
  const RopeScaling& r = m.rope_scaling;
  if (r.type != "longrope") return;
  expect(r.original_positions > 1,
         "model.rope_scaling.original_max_position_embeddings is {}: expected more than 1 with longrope",
         r.original_positions);
  for (const auto& [name, factors] : {std::pair{"short_factor", &r.short_factors}, {"long_factor", &r.long_factors}})
    expect(factors->size() == m.turned() / 2,
           "model.rope_scaling.{} has {} factors: expected {}, one for each pair that is turned", name, factors->size(),
           m.turned() / 2);
}

void check_model(const StepConfig& c) {
  const ModelConfig& m = c.model;
  check_longrope(m);
  expect(m.head_dim > 0 || m.hidden_size % m.num_attention_heads == 0,
         "model.hidden_size is {}: expected a multiple of num_attention_heads {}, or model.head_dim", m.hidden_size,
         m.num_attention_heads);
  expect(m.head_size() % 2 == 0, "{} is {}: expected an even number",
         m.head_dim > 0 ? "model.head_dim" : "model.hidden_size / num_attention_heads", m.head_size());
  const RopeScaling& r = m.rope_scaling;
  expect(r.type != "llama3" || r.low_frequency < r.high_frequency,
         "model.rope_scaling.low_freq_factor is {}: expected less than high_freq_factor, {}", r.low_frequency,
         r.high_frequency);
  expect(r.type != "yarn" || r.beta_slow < r.beta_fast,
         "model.rope_scaling.beta_slow is {}: expected less than beta_fast, {}", r.beta_slow, r.beta_fast);
  expect((r.type != "yarn" && r.type != "dynamic") || m.rope_theta > 1,
         "model.rope_theta is {}: expected more than 1 with rope_scaling of type {}", m.rope_theta, r.type);
  expect(r.type != "dynamic" || m.head_size() > 2,
         "model.head_dim is {}: expected more than 2 with dynamic rope_scaling", m.head_size());
  expect(m.num_attention_heads % m.kv_heads() == 0,
         "model.num_key_value_heads is {}: expected a divisor of num_attention_heads {}", m.kv_heads(),
         m.num_attention_heads);
  for (std::size_t layer : c.recompute_layers)
    expect(layer < m.num_layers, "model.activations_checkpoint_layers has {}: expected layers 0 to {}", layer,
           m.num_layers - 1);
}

void check_split(const StepConfig& c) {
  const auto t = static_cast<std::size_t>(c.strategy.tensor);
  const auto divides = [&](const char* field, std::size_t n) {
    expect(n % t == 0, "{} is {}: expected a multiple of tensor_model_parallel_size {}", field, n, t);
  };
  expect(c.model.num_attention_heads >= t,
         "model.num_attention_heads is {}: expected at least one for each of tensor_model_parallel_size {}",
         c.model.num_attention_heads, t);
  divides("model.intermediate_size", c.model.inner());
  expect(c.model.vocab_size >= t,
         "model.vocab_size is {}: expected at least one for each of tensor_model_parallel_size {}", c.model.vocab_size,
         t);
  if (c.strategy.sequence_parallel)
    divides(c.strategy.context > 1 ? "data.seq_length / context_parallel_size" : "data.seq_length", c.positions_here());
  const std::size_t kv = c.model.kv_heads();
  expect(kv >= t || t % kv == 0,
         "model.num_key_value_heads is {}: expected a divisor of tensor_model_parallel_size {}, or no less", kv, t);
}

void check_context(const StepConfig& c) {
  const auto ranks = static_cast<std::size_t>(c.strategy.context);
  if (ranks == 1) return;
  expect(
      c.seq_length % (2 * ranks) == 0,
      "data.seq_length is {}: expected a multiple of 2 x context_parallel_size, 2 x {}: each rank has a stretch from "
      "the front and one from the back",
      c.seq_length, ranks);
  expect(c.experts.experts == 0 || c.experts.capacity() == 0,
         "distributed_strategy.context_parallel_size is {}: expected 1 with model.moe.capacity_factor {}, as what an "
         "expert drops depends on which tokens a rank has; or model.moe.dropless",
         ranks, c.experts.capacity());
}

std::vector<std::size_t> stages(const StepConfig& c) {
  const auto count =
      static_cast<std::size_t>(c.strategy.pipeline) * static_cast<std::size_t>(c.strategy.virtual_pipeline);
  const std::size_t layers = c.model.num_layers;
  std::vector<std::size_t> sizes;
  if (c.strategy.cuts.empty()) {
    expect(layers >= count, "model.num_layers is {}: expected at least one for each of {} pipeline stages", layers,
           count);
    sizes = auto_partition(layers, count);
  } else {
    expect(c.strategy.cuts.size() + 1 == count,
           "model.pipeline_cuts has {} entries: expected {}, one for each stage but the last", c.strategy.cuts.size(),
           count - 1);
    std::size_t first = 0;
    for (std::size_t cut : c.strategy.cuts) {
      expect(cut >= first && cut + 1 < layers,
             "model.pipeline_cuts: layer {} cannot end a stage that begins with layer {} of {}", cut, first, layers);
      sizes.push_back(cut + 1 - first);
      first = cut + 1;
    }
    sizes.push_back(layers - first);
  }
  std::vector<std::size_t> of_layer;
  for (std::size_t s = 0; s < sizes.size(); ++s) of_layer.insert(of_layer.end(), sizes[s], s);
  return of_layer;
}

void check_optimizer(const OptimizerConfig& o, const ScheduleConfig& s) {
  expect(o.max_norm > 0 && std::isfinite(o.max_norm), "trainer.gradient_clip_val is {}: expected more than 0",
         o.max_norm);
  expect(!o.nesterov || o.momentum > 0,
         "model.optim.nesterov with model.optim.momentum 0: expected a momentum above 0");
  expect(s.name == "constant" || s.min_lr <= o.learning_rate,
         "model.optim.sched.min_lr is {}: expected at most model.optim.lr, {}", s.min_lr, o.learning_rate);
}

}  // namespace

std::string_view name(Precision p) {
  return text::word_of(p,
                       {"fp32", "bf16SR", "bf16", "mixed_precision", "mixed_precisionSR", "autocast", "fp8", "mxfp8"});
}

std::string_view name(Recompute r) { return text::word_of(r, {"none", "selective", "full"}); }

std::string context_words(const StepConfig& c) {
  if (c.strategy.context == 1) return "";
  return fmt::format(", context {} ({})", c.strategy.context,
                     c.strategy.ring_attention ? "a ring of keys and values" : "keys and values gathered");
}

std::size_t StepConfig::sequences_together(Rank world) const {
  const std::int64_t of_model = std::int64_t{strategy.tensor} * strategy.context * strategy.pipeline;
  return of_model < 1 || world % of_model != 0 ? 0 : micro_batch_size * static_cast<std::size_t>(world / of_model);
}

std::vector<std::size_t> auto_partition(std::size_t layers, std::size_t stages) {
  std::vector<std::size_t> sizes(stages, layers / stages);
  for (std::size_t s = stages - layers % stages; s < stages; ++s) ++sizes[s];
  return sizes;
}

Derived derive(const StepConfig& c, Rank world) {
  check_values({.step = c, .trainer = {}, .data = {}, .experiment = {}});
  check_model(c);
  check_optimizer(c.optimizer, c.schedule);
  const StrategyConfig& s = c.strategy;
  const std::size_t together = c.sequences_together(world);
  expect(world >= 1 && together > 0, "{} ranks: expected a multiple of tensor x pipeline{} parallel sizes, {} x {}{}",
         world, s.context > 1 ? " x context" : "", s.tensor, s.pipeline,
         s.context > 1 ? fmt::format(" x {}", s.context) : "");
  Derived d;
  d.mesh = {.pipeline = s.pipeline,
            .data = world / s.ranks_of_model(),
            .context = s.context,
            .tensor = s.tensor,
            .expert = s.expert};
  check_context(c);
  check_experts(c, d.mesh.data * d.mesh.context);
  expect(c.global_batch_size % together == 0,
         "data.global_batch_size is {}: expected a multiple of micro_batch_size x data parallel size, {} x {}",
         c.global_batch_size, c.micro_batch_size, d.mesh.data);
  d.micro_batches = c.global_batch_size / together;
  check_passes(c, d.micro_batches);
  check_split(c);
  d.stage_of_layer = stages(c);
  const auto kv = static_cast<Rank>(c.model.kv_heads());
  d.kv_copies = kv >= s.tensor ? 1 : s.tensor / kv;
  expect(s.kv_replicator == 0 || s.kv_replicator == d.kv_copies,
         "distributed_strategy.kv_replicator is {}: expected {} for {} key and value heads on {} tensor ranks",
         s.kv_replicator, d.kv_copies, kv, s.tensor);
  return d;
}

}  // namespace trellis::train
