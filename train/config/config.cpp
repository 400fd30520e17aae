#include "train/config/config.h"

#include <fmt/format.h>

#include <stdexcept>

namespace trellis::train {
namespace {

template <class... T>
void expect(bool right, fmt::format_string<T...> format, T&&... values) {
  if (!right) throw std::invalid_argument(fmt::format(format, std::forward<T>(values)...));
}

// Far above what is trained, and few enough for a step to be laid out: a pass through a layer takes some 45 KB.
constexpr std::size_t most_layers = 4096, most_micro_batches = 65'536, most_passes = 262'144;
constexpr std::size_t most_elements = std::size_t{1} << 28;  // along one side of a tensor

void check_sizes(const Config& c) {
  const ModelConfig& m = c.model;
  const std::pair<const char*, std::size_t> sides[] = {{"model.vocab_size", m.vocab_size},
                                                       {"model.hidden_size", m.hidden_size},
                                                       {"model.intermediate_size", m.intermediate_size},
                                                       {"model.num_attention_heads", m.num_attention_heads},
                                                       {"data.seq_length", c.seq_length},
                                                       {"data.micro_batch_size", c.micro_batch_size}};
  for (const auto& [field, size] : sides)
    expect(size <= most_elements, "{} is {}: expected at most {}", field, size, most_elements);
  expect(m.num_layers <= most_layers, "model.num_layers is {}: expected at most {}", m.num_layers, most_layers);
}

// What a rank's step has to go through.
void check_passes(const Config& c, std::size_t micro_batches) {
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

void check_model(const ModelConfig& m) {
  expect(m.vocab_size >= 2, "model.vocab_size is {}: expected at least 2", m.vocab_size);
  expect(m.num_layers >= 1, "model.num_layers is {}: expected at least 1", m.num_layers);
  expect(m.num_attention_heads >= 1 && m.hidden_size % m.num_attention_heads == 0,
         "model.hidden_size is {}: expected a multiple of num_attention_heads {}", m.hidden_size,
         m.num_attention_heads);
  expect(m.head_size() % 2 == 0, "model.hidden_size / num_attention_heads is {}: expected an even number",
         m.head_size());
  expect(m.num_attention_heads % m.kv_heads() == 0,
         "model.num_key_value_heads is {}: expected a divisor of num_attention_heads {}", m.kv_heads(),
         m.num_attention_heads);
  expect(m.hidden_dropout >= 0 && m.hidden_dropout < 1, "model.hidden_dropout is {}: expected 0 to below 1",
         m.hidden_dropout);
  expect(m.attention_dropout >= 0 && m.attention_dropout < 1, "model.attention_dropout is {}: expected 0 to below 1",
         m.attention_dropout);
  expect(m.label_smoothing >= 0 && m.label_smoothing < 1, "model.label_smoothing is {}: expected 0 to below 1",
         m.label_smoothing);
}

void check_split(const Config& c) {
  const auto t = static_cast<std::size_t>(c.strategy.tensor);
  const auto divides = [&](const char* field, std::size_t n) {
    expect(n % t == 0, "{} is {}: expected a multiple of tensor_model_parallel_size {}", field, n, t);
  };
  expect(c.model.num_attention_heads >= t,
         "model.num_attention_heads is {}: expected at least one for each of tensor_model_parallel_size {}",
         c.model.num_attention_heads, t);
  divides("model.intermediate_size", c.model.inner());
  divides("model.vocab_size", c.model.vocab_size);
  if (c.strategy.sequence_parallel) divides("data.seq_length", c.seq_length);
  const std::size_t kv = c.model.kv_heads();
  expect(kv >= t || t % kv == 0,
         "model.num_key_value_heads is {}: expected a divisor of tensor_model_parallel_size {}, or no less", kv, t);
}

std::vector<std::size_t> stages(const Config& c) {
  const auto count = static_cast<std::size_t>(c.strategy.pipeline * c.strategy.virtual_pipeline);
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

void check_optimizer(const OptimizerConfig& o) {
  expect(o.max_norm > 0, "trainer.gradient_clip_val is {}: expected more than 0", o.max_norm);
  expect(o.norm_type > 0, "the norm's p is {}: expected more than 0, or infinity", o.norm_type);
  expect(o.momentum >= 0 && o.momentum < 1, "model.optim.momentum is {}: expected 0 to below 1", o.momentum);
  expect(!o.nesterov || o.momentum > 0,
         "model.optim.nesterov with model.optim.momentum 0: expected a momentum above 0");
  expect(o.beta1 >= 0 && o.beta1 < 1, "model.optim.betas: {} is not in 0 to below 1", o.beta1);
  expect(o.beta2 >= 0 && o.beta2 < 1, "model.optim.betas: {} is not in 0 to below 1", o.beta2);
}

}  // namespace

std::string_view name(Precision p) {
  constexpr std::string_view names[] = {"fp32", "bf16SR", "bf16", "mixed_precision", "mixed_precisionSR", "autocast"};
  return names[static_cast<std::size_t>(p)];
}

std::string_view name(Recompute r) {
  constexpr std::string_view names[] = {"none", "selective", "full"};
  return names[static_cast<std::size_t>(r)];
}

std::vector<std::size_t> auto_partition(std::size_t layers, std::size_t stages) {
  std::vector<std::size_t> sizes(stages, layers / stages);
  for (std::size_t s = stages - layers % stages; s < stages; ++s) ++sizes[s];
  return sizes;
}

Derived derive(const Config& c, Rank world) {
  check_sizes(c);
  check_model(c.model);
  check_optimizer(c.optimizer);
  const StrategyConfig& s = c.strategy;
  const std::pair<const char*, Rank> sizes[] = {{"tensor_model_parallel_size", s.tensor},
                                                {"pipeline_model_parallel_size", s.pipeline},
                                                {"virtual_pipeline_model_parallel_size", s.virtual_pipeline}};
  for (const auto& [field, size] : sizes)
    expect(size >= 1, "distributed_strategy.{} is {}: expected at least 1", field, size);
  expect(s.context == 1, "distributed_strategy.context_parallel_size is {}: ring attention is not built; expected 1",
         s.context);
  expect(s.expert == 1, "distributed_strategy.expert_model_parallel_size is {}: no model here has experts; expected 1",
         s.expert);
  expect(world >= 1 && world % (s.tensor * s.pipeline) == 0,
         "{} ranks: expected a multiple of tensor x pipeline parallel sizes, {} x {}", world, s.tensor, s.pipeline);
  Derived d;
  d.mesh = {.pipeline = s.pipeline, .data = world / (s.tensor * s.pipeline), .tensor = s.tensor};
  const std::size_t together = c.micro_batch_size * static_cast<std::size_t>(d.mesh.data);
  expect(c.micro_batch_size >= 1, "data.micro_batch_size is {}: expected at least 1", c.micro_batch_size);
  expect(c.seq_length >= 2, "data.seq_length is {}: expected at least 2", c.seq_length);
  expect(c.global_batch_size >= 1 && c.global_batch_size % together == 0,
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
