#include "train/checkpoint/hf_names.h"

#include <array>
#include <string_view>
#include <utility>

namespace trellis::train {
namespace {

using Words = std::pair<std::string_view, std::string_view>;  // here, there

constexpr std::array<std::string_view, 3> projections{"query", "key", "value"};
constexpr std::string_view fused_neox = "query_key_value", fused_gpt2 = "c_attn";

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

// Their name of a name here whose parts are called differently.
std::string renamed(const Config& c, std::string name) {
  if (c.model.architecture == "gpt3")
    for (const auto& [here, there] : of_gpt2) replace(name, here, there);
  return name;
}

std::string renamed_back(const Config& c, std::string name) {
  if (c.model.architecture == "gpt3")
    for (const auto& [here, there] : of_gpt2) replace(name, there, here);
  return name;
}

// The projection of "...attention.key.weight", of which the fused tensor has all three; -1: it is none.
int projection_of(std::string_view name) {
  const std::size_t last = name.rfind('.');
  if (last == name.npos || last == 0) return -1;
  const std::size_t before = name.rfind('.', last - 1);
  if (before == name.npos) return -1;
  const std::string_view word = name.substr(before + 1, last - before - 1);
  for (std::size_t i = 0; i < projections.size(); ++i)
    if (word == projections[i]) return static_cast<int>(i);
  return -1;
}

std::string_view fused_of(const Config& c) {
  return c.model.architecture == "gpt_neox" ? fused_neox
         : c.model.architecture == "gpt3"   ? fused_gpt2
                                            : std::string_view();
}

// GPT-2 keeps the weights of its projections transposed.
bool is_transposed(const Config& c, std::string_view theirs) {
  return c.model.architecture == "gpt3" && theirs.ends_with(".weight") && theirs.find(".c_") != theirs.npos;
}

}  // namespace

Slice HfPlace::whole(const Slice& theirs) const {
  std::size_t rows = transposed ? theirs.columns : theirs.rows;
  const std::size_t columns = transposed ? theirs.rows : theirs.columns;
  if (run != 0) rows = rows / stride * run;
  return {rows, columns, 0, rows, 0, columns};
}

Slice HfPlace::theirs(const Slice& whole) const {
  std::size_t rows = run == 0 ? whole.rows : whole.rows / run * stride, columns = whole.columns;
  if (transposed) std::swap(rows, columns);
  return {rows, columns, 0, rows, 0, columns};
}

HfPlace hf_place(const Config& c, const std::string& parameter) {
  HfPlace p{.name = renamed(c, parameter)};
  const std::string_view fused = fused_of(c);
  if (const int which = fused.empty() ? -1 : projection_of(p.name); which >= 0) {
    const auto i = static_cast<std::size_t>(which);
    replace(p.name, "." + std::string(projections[i]) + ".", "." + std::string(fused) + ".");
    // NeoX has q, k and v of a head together, GPT-2 those of all heads.
    p.run = fused == fused_neox ? c.model.head_size() : c.model.num_attention_heads * c.model.head_size();
    p.stride = 3 * p.run, p.first = i * p.run;
  }
  p.transposed = is_transposed(c, p.name);
  return p;
}

std::vector<std::string> parameters_of_hf(const Config& c, const std::string& theirs) {
  const std::string fused = "." + std::string(fused_of(c)) + ".";
  std::string name = renamed_back(c, theirs);
  if (fused.size() == 2 || name.find(fused) == name.npos) return {name};
  std::vector<std::string> all;
  for (const std::string_view each : projections) {
    all.push_back(name);
    replace(all.back(), fused, "." + std::string(each) + ".");
  }
  return all;
}

std::string hf_name_today(const Config& c, const std::string& theirs) {
  std::string name = theirs;
  if (c.model.architecture == "gpt3")
    for (const std::string_view begin : {"wte.", "wpe.", "h.", "ln_f."})
      if (name.starts_with(begin)) return "transformer." + name;
  if (c.model.architecture == "bert")
    replace(name, "LayerNorm.gamma", "LayerNorm.weight"), replace(name, "LayerNorm.beta", "LayerNorm.bias");
  return name;
}

}  // namespace trellis::train
