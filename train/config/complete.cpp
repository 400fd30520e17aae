#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "text/refuse.h"
#include "train/config/apply_config_keys.h"

namespace trellis::train {
namespace {

struct Described {
  const char *architecture, *activation, *normalization, *positions, *bias;
};

// Each architecture, described by the values of Megatron's keys.
constexpr Described all[] = {{"llama", "swiglu", "rmsnorm", "rope", "false"},
                             {"gpt3", "gelu", "layernorm", "learned_absolute", "true"},
                             {"gpt_neox", "gelu", "layernorm", "rope", "true"}};

bool fits(const std::string& said, const char* word) { return said.empty() || said == word; }

bool fits(const LayerWords& w, const Described& d) {
  return fits(w.activation, d.activation) && fits(w.normalization, d.normalization) && fits(w.positions, d.positions) &&
         fits(w.bias, d.bias) && fits(w.architecture, d.architecture);
}

// Layers that Megatron's keys describe as Llama's are Mixtral's if they have experts.
std::string with_experts(const JobConfig& c, const std::string& architecture) {
  return architecture == "llama" && c.step.experts.experts > 0 ? "mixtral" : architecture;
}

std::string words_of(const LayerWords& w) {
  std::vector<std::string> said;
  for (const auto& [key, value] : {std::pair{"architecture", w.architecture},
                                   {"activation", w.activation},
                                   {"normalization", w.normalization},
                                   {"position_embedding_type", w.positions},
                                   {"has_bias", w.bias}})
    if (!value.empty()) said.push_back(fmt::format("model.{} {}", key, value));
  return fmt::format("{}", fmt::join(said, ", "));
}

}  // namespace

void complete(JobConfig& c) {
  const LayerWords& w = c.words;
  if (w.architecture.empty()) c.step.model.architecture = with_experts(c, c.step.model.architecture);
  if (w.activation.empty() && w.normalization.empty() && w.positions.empty() && w.bias.empty()) return;
  for (const Described& d : all)
    if (fits(w, d)) return void(c.step.model.architecture = with_experts(c, d.architecture));
  std::vector<std::string> known;
  for (const Described& d : all)
    known.push_back(fmt::format("{} ({}, {}, {}, {})", d.architecture, d.activation, d.normalization, d.positions,
                                std::string_view(d.bias) == "true" ? "biases" : "no biases"));
  text::refuse("no architecture has {}: expected {}", words_of(w), fmt::join(known, " or "));
}

}  // namespace trellis::train
