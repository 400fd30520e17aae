#include "train/checkpoint/hf_tensor_mapping.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace trellis::train {
namespace {

using Words = std::pair<std::string_view, std::string_view>;  // our word, Hugging Face's word

// A tensor of Hugging Face that joins the rows of several of our parameters: head by head (by_head), or each parameter
// whole, one after the other.
struct Fused {
  std::string_view theirs;
  std::vector<std::string_view> ours;
  bool by_head = false;
};

const std::vector<Fused>& fused_of(const StepConfig& c) {
  static const std::vector<Fused> none, neox{{"query_key_value", {"query", "key", "value"}, true}},
      gpt2{{"c_attn", {"query", "key", "value"}}},
      phi3{{"qkv_proj", {"q_proj", "k_proj", "v_proj"}}, {"gate_up_proj", {"gate_proj", "up_proj"}}};
  const std::string& name = c.model.architecture;
  return name == "gpt_neox" ? neox : name == "gpt3" ? gpt2 : name == "phi3" ? phi3 : none;
}

// Rows of one of the joined parameters: queries, keys or values, or the inner layer of a perceptron.
std::size_t rows_of(const StepConfig& c, const Fused& fused, std::size_t which) {
  const ModelConfig& m = c.model;
  if (fused.ours.size() == 2) return m.inner();
  return (which == 0 ? m.num_attention_heads : m.kv_heads()) * m.head_size();
}

constexpr Words of_gpt2[] = {{"gpt.norm_f.", "transformer.ln_f."},
                             {"gpt.", "transformer."},
                             {".norm_1.", ".ln_1."},
                             {".norm_2.", ".ln_2."},
                             {".attn.dense.", ".attn.c_proj."}};

bool replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == text.npos) return false;
  text.replace(at, from.size(), to);
  return true;
}

// Hugging Face's name of a parameter. GPT-2's parts have other names there.
std::string renamed(const StepConfig& c, std::string name) {
  if (c.model.architecture == "gpt3")
    for (const auto& [here, there] : of_gpt2) replace(name, here, there);
  return name;
}

std::string renamed_back(const StepConfig& c, std::string name) {
  if (c.model.architecture == "gpt3")
    for (const auto& [here, there] : of_gpt2) replace(name, there, here);
  return name;
}

// Replaces the last word but one, as in "...attention.key.weight". Names of adapters have one word more and stay.
bool replace_layer(std::string& name, std::string_view from, std::string_view to) {
  const std::string word = fmt::format(".{}.", from);
  const std::size_t at = name.find(word);
  if (at == name.npos || name.find('.', at + word.size()) != name.npos) return false;
  return replace(name, word, fmt::format(".{}.", to));
}

// GPT-2 keeps the weights of its projections transposed.
bool is_transposed(const StepConfig& c, std::string_view theirs) {
  return c.model.architecture == "gpt3" && theirs.ends_with(".weight") && theirs.find(".c_") != theirs.npos;
}

}  // namespace

TensorSlice HfTensorMapping::whole(const TensorSlice& theirs) const {
  std::size_t rows = transposed ? theirs.columns : theirs.rows;
  const std::size_t columns = transposed ? theirs.rows : theirs.columns;
  if (run != 0) rows = rows / stride * run;
  return {rows, columns, 0, rows, 0, columns};
}

TensorSlice HfTensorMapping::theirs(const TensorSlice& whole) const {
  std::size_t rows = run == 0 ? whole.rows : whole.rows / run * stride, columns = whole.columns;
  if (transposed) std::swap(rows, columns);
  return {rows, columns, 0, rows, 0, columns};
}

HfTensorMapping hf_place(const StepConfig& c, const std::string& parameter) {
  HfTensorMapping p{.name = renamed(c, parameter)};
  for (const Fused& fused : fused_of(c))
    for (std::size_t i = 0, before = 0; i < fused.ours.size(); before += rows_of(c, fused, i), ++i) {
      if (!replace_layer(p.name, fused.ours[i], fused.theirs)) continue;
      p.run = fused.by_head ? c.model.head_size() : rows_of(c, fused, i);
      p.first = fused.by_head ? i * p.run : before;
      for (std::size_t each = 0; each < fused.ours.size(); ++each)
        p.stride += fused.by_head ? p.run : rows_of(c, fused, each);
      break;
    }
  p.transposed = is_transposed(c, p.name);
  return p;
}

std::vector<std::string> parameters_of_hf(const StepConfig& c, const std::string& theirs) {
  const std::string name = renamed_back(c, theirs);
  for (const Fused& fused : fused_of(c)) {
    std::vector<std::string> all;
    for (const std::string_view each : fused.ours)
      if (std::string own = name; replace_layer(own, fused.theirs, each)) all.push_back(own);
    if (!all.empty()) return all;
  }
  return {name};
}

std::string hf_name_today(const StepConfig& c, const std::string& theirs) {
  std::string name = theirs;
  if (c.model.architecture == "gpt3")
    for (const std::string_view begin : {"wte.", "wpe.", "h.", "ln_f."})
      if (name.starts_with(begin)) return "transformer." + name;
  if (c.model.architecture == "bert")
    replace(name, "LayerNorm.gamma", "LayerNorm.weight"), replace(name, "LayerNorm.beta", "LayerNorm.bias");
  return name;
}

}  // namespace trellis::train
