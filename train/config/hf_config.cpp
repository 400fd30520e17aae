#include "train/config/hf_config.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "train/config/keys.h"

namespace trellis::train {
namespace {

using nlohmann::json;

constexpr std::pair<const char*, const char*> names[] = {{"vocab_size", "model.vocab_size"},
                                                         {"hidden_size", "model.hidden_size"},
                                                         {"num_hidden_layers", "model.num_layers"},
                                                         {"num_attention_heads", "model.num_attention_heads"},
                                                         {"num_key_value_heads", "model.num_key_value_heads"},
                                                         {"intermediate_size", "model.intermediate_size"},
                                                         {"max_position_embeddings", "model.max_position_embeddings"},
                                                         {"rms_norm_eps", "model.rms_norm_eps"},
                                                         {"rope_theta", "model.rope_theta"},
                                                         {"tie_word_embeddings", "model.tie_word_embeddings"},
                                                         {"initializer_range", "model.initializer_range"},
                                                         {"attention_dropout", "model.attention_dropout"},
                                                         {"sliding_window", "model.sliding_window_size"}};

std::string word_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

bool is_none(const json& said, const char* field) { return !said.contains(field) || said[field].is_null(); }

void expect(const json& said, const char* field, const json& served, const char* why) {
  if (!is_none(said, field) && said[field] != served)
    throw std::invalid_argument(
        fmt::format("{} is {}: expected {}; {}", field, said[field].dump(), served.dump(), why));
}

// What these layers do not compute.
void check(const json& said) {
  const std::string type = said.value("model_type", "");
  if (type != "llama" && type != "mistral")
    throw std::invalid_argument(fmt::format("model_type is '{}': expected llama or mistral", type));
  expect(said, "hidden_act", "silu", "the perceptron is SwiGLU");
  expect(said, "attention_bias", false, "projections have no biases");
  expect(said, "mlp_bias", false, "projections have no biases");
  if (!is_none(said, "rope_scaling"))
    throw std::invalid_argument(
        fmt::format("rope_scaling is {}: expected null; positions are not scaled here", said["rope_scaling"].dump()));
  if (!is_none(said, "head_dim") && said["head_dim"].get<double>() * said.at("num_attention_heads").get<double>() !=
                                        said.at("hidden_size").get<double>())
    throw std::invalid_argument(
        fmt::format("head_dim is {}: expected hidden_size / num_attention_heads", said["head_dim"].dump()));
}

}  // namespace

void apply_hf_config(JobConfig& config, const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::invalid_argument(fmt::format("model.model_config: cannot read {}", path.string()));
  try {
    const json said = json::parse(in);
    check(said);
    for (const auto& [theirs, ours] : names)
      if (!is_none(said, theirs)) apply(config, {.key = ours, .words = {word_of(said[theirs])}});
  } catch (const std::exception& e) {
    throw std::invalid_argument(fmt::format("{}: {}", path.string(), e.what()));
  }
  config.step.model.architecture = "llama";
}

}  // namespace trellis::train
