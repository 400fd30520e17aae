// The keys of the parallel layout and of the data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/config/config_key.h"

namespace trellis::train {
namespace {

constexpr double most_ranks = 1 << 20;
constexpr double most_batches_ahead = 1024;
constexpr double most_batch = 1e12;

// Paths may each have a weight before them, as in Megatron. If none has one, the weights of train_weights stay.
std::string set_prefix(JobConfig& c, const KeyValue& v) {
  const auto is_number = [](const std::string& w) { return w.find_first_not_of("0123456789.eE+-") == w.npos; };
  c.data.train_path.clear();
  std::vector<double> weights;
  for (const std::string& w : v.words) {
    if (!is_number(w))
      c.data.train_path.push_back(w);
    else if (weights.size() == c.data.train_path.size())
      weights.push_back(decimal(v, w, above(0)));
    else
      refuse(v, "a weight before each path, or before none");
  }
  if (weights.empty()) return "";
  if (weights.size() != c.data.train_path.size()) refuse(v, "a weight before each path, or before none");
  return c.data.weights = std::move(weights), "";
}

// Weights that are given in a key of their own, not within train_path.
std::string set_weights(JobConfig& c, const KeyValue& v) {
  c.data.weights.clear();
  for (const std::string& w : v.words) c.data.weights.push_back(decimal(v, w, above(0)));
  return "";
}

std::string weights_text(const JobConfig& c) { return fmt::format("{}", fmt::join(c.data.weights, ", ")); }

}  // namespace

std::vector<ConfigKey> strategy_keys() {
  const auto k = [](const char* name, auto... rest) {
    return key(fmt::format("distributed_strategy.{}", name), ChangeOnResume::said, std::move(rest)...);
  };
  const AllowedRange ranks = between(1, most_ranks);
  return {
      k("tensor_model_parallel_size", ranks, [](auto& c) { return &c.step.strategy.tensor; }),
      k("pipeline_model_parallel_size", ranks, [](auto& c) { return &c.step.strategy.pipeline; }),
      k("virtual_pipeline_model_parallel_size", ranks, [](auto& c) { return &c.step.strategy.virtual_pipeline; }),
      k("context_parallel_size", ranks, [](auto& c) { return &c.step.strategy.context; }),
      k("expert_model_parallel_size", ranks, [](auto& c) { return &c.step.strategy.expert; }),
      only("distributed_strategy.token_shuffle_group_size", {"1"}, "tokens go to their experts as they come"),
      k("zero1", [](auto& c) { return &c.step.strategy.zero1; }),
      k("sequence_parallel", [](auto& c) { return &c.step.strategy.sequence_parallel; }),
      k("kv_replicator", between(0, most_ranks), [](auto& c) { return &c.step.strategy.kv_replicator; }),
      k("pipeline_schedule", [](auto& c) { return &c.step.strategy.schedule; }),
  };
}

// train_path is not compared when a run is resumed: the data's content is.
std::vector<ConfigKey> data_keys() {
  const KeySection k{"data"};
  using enum ChangeOnResume;
  return {
      k("micro_batch_size", said, between(1, most_side), [](auto& c) { return &c.step.micro_batch_size; }),
      k("global_batch_size", course, between(1, most_batch), [](auto& c) { return &c.step.global_batch_size; }),
      k("seq_length", course, between(1, most_side), [](auto& c) { return &c.step.seq_length; }),
      k("train_path", silent, [](auto& c) { return &c.data.train_path; }),
      also("data.train_dir", "data.train_path"),
      {.name = "data.data_prefix", .apply = set_prefix},
      {.name = "data.train_weights", .apply = set_weights, .resumed = course, .text = weights_text},
      k("reset_attention_mask", course, [](auto& c) { return &c.step.cut_attention; }),
      k("eod_mask_loss", course, [](auto& c) { return &c.data.mask_ends; }),
      k("token_bytes", course, one_of({0, 2, 4}), [](auto& c) { return &c.data.token_bytes; }),
      k("special_tokens", course, between(0, most_side), [](auto& c) { return &c.data.special_tokens; }),
      k("prefetch", silent, between(0, most_batches_ahead), [](auto& c) { return &c.data.prefetch; }),
      k("val_path", silent, [](auto& c) { return &c.data.val_path; }),
      also("data.val_dir", "data.val_path"),
      idle("data.splits_string", "all of the data is for training"),
      idle("data.num_workers", "batches are read ahead by one thread"),
      idle("data.tokenizer", "`python3 -m trellis.train prepare` makes tokens; text alone is read as bytes"),
      k("packing", course, [](auto& c) { return &c.data.packing; }),
  };
}

}  // namespace trellis::train
