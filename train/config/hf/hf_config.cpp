#include "train/config/hf/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "text/refuse.h"
#include "train/config/apply_config_keys.h"
#include "train/config/hf/hf_families.h"

namespace trellis::train {
namespace {

using nlohmann::json;

std::string word_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

bool is_none(const json& said, const char* field) { return !said.contains(field) || said[field].is_null(); }

void put(JobConfig& c, const char* key, const json& value) {
  KeyValue said{.key = key};
  said.list = value.is_array();
  for (const json& each : said.list ? value : json::array({value})) said.words.push_back(word_of(each));
  apply(c, said);
}

const HfFamily& family_of(const json& said) {
  const std::string type = said.value("model_type", "");
  std::vector<std::string> known;
  for (const HfFamily& f : hf_families()) {
    if (f.type == type) return f;
    known.emplace_back(f.type);
  }
  text::refuse("model_type is '{}': expected {}", type, fmt::join(known, ", "));
}

void check(const json& said, const HfFamily& family) {
  if (!is_none(said, "quantization_config"))
    text::refuse("quantization_config is {}: expected none; weights are read as f32, bf16 or f16",
                 said["quantization_config"].dump());
  for (const HfSupportedValues& e : family.expected)
    if (!is_none(said, e.field) && std::ranges::find(e.served, said[e.field]) == e.served.end())
      text::refuse("{} is {}: expected {}; {}", e.field, said[e.field].dump(), e.served[0].dump(), e.why);
}

bool has_experts(const ModelConfig& m) { return m.architecture == "mixtral" || m.architecture == "qwen3_moe"; }

bool is_phi(const ModelConfig& m) { return m.architecture == "phi3"; }

// Families with grouped queries.
bool is_llama_like(const ModelConfig& m) { return m.architecture == "llama" || is_phi(m) || has_experts(m); }

constexpr const char* rope_fields[] = {
    "factor",         "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
    "beta_fast",      "beta_slow",       "attention_factor", "mscale",
    "mscale_all_dim", "truncate",        "short_factor",     "long_factor"};

// Reads rope_parameters, or, in older files, rope_scaling and the fields beside it.
void apply_rope(JobConfig& c, const json& said) {
  if (!is_none(said, "rope_theta")) put(c, "model.rope_theta", said["rope_theta"]);
  if (!is_none(said, "partial_rotary_factor")) put(c, "model.rotary_percentage", said["partial_rotary_factor"]);
  const char* const section = is_none(said, "rope_parameters") ? "rope_scaling" : "rope_parameters";
  if (is_none(said, section)) return;
  const json& rope = said[section];
  if (!rope.is_object()) text::refuse("{} is {}: expected fields", section, rope.dump());
  std::string type = rope.value("rope_type", rope.value("type", "default"));
  if (is_phi(c.step.model) && (type == "su" || type == "yarn")) type = "longrope";  // as older files of Phi-3 call it
  put(c, "model.rope_scaling.rope_type", type);
  for (const char* field : rope_fields)
    if (!is_none(rope, field)) put(c, fmt::format("model.rope_scaling.{}", field).c_str(), rope[field]);
  // Without a given factor, it is the ratio of the longest sequence to the original one.
  RopeScaling& scaling = c.step.model.rope_scaling;
  if (type == "longrope" && !is_none(said, "original_max_position_embeddings"))
    put(c, "model.rope_scaling.original_max_position_embeddings", said["original_max_position_embeddings"]);
  if ((type == "yarn" || type == "longrope") && is_none(rope, "factor") && scaling.original_positions > 0)
    scaling.factor =
        static_cast<double>(c.step.model.max_position_embeddings) / static_cast<double>(scaling.original_positions);
  if (!is_none(rope, "rope_theta")) put(c, "model.rope_theta", rope["rope_theta"]);
  if (!is_none(rope, "partial_rotary_factor")) put(c, "model.rotary_percentage", rope["partial_rotary_factor"]);
}

// How many positions attention sees. Mistral's kin always use sliding_window, qwen only with use_sliding_window. A
// window in only some of the layers is refused.
void apply_window(JobConfig& c, const json& said, const std::string& type) {
  const bool always = type == "mistral" || type == "mixtral" || type == "phi3";
  if (is_none(said, "sliding_window") || (!always && !said.value("use_sliding_window", false))) return;
  bool some = false, others = false;
  if (!is_none(said, "layer_types")) {
    for (const json& each : said["layer_types"]) (each == "sliding_attention" ? some : others) = true;
  } else {
    const auto first = said.value("max_window_layers", std::int64_t{0});
    some = first<static_cast<std::int64_t>(c.step.model.num_layers), others = first> 0;
  }
  if (always) some = true, others = false;
  if (some && others)
    throw std::invalid_argument("use_sliding_window is true for some layers: expected all of them, or none");
  if (some) put(c, "model.sliding_window", said["sliding_window"]);
}

std::string apply_json(JobConfig& c, const json& said) {
  const HfFamily& family = family_of(said);
  check(said, family);
  ModelConfig& m = c.step.model;
  const double smoothing = m.label_smoothing;
  m = {};
  m.label_smoothing = smoothing, m.architecture = family.architecture;
  m.tie_word_embeddings = family.tied, m.norm_epsilon = family.epsilon;
  const std::string_view type = family.type;
  m.qkv_bias = type == "qwen2", m.qk_norm = type == "qwen3" || type == "qwen3_moe";
  if (has_experts(m)) c.step.experts = {.normalize = type == "mixtral", .balanced = false};
  const bool turns = m.architecture != "bert" && m.architecture != "gpt3";
  if (m.architecture == "gpt_neox") m.rotary_percentage = 0.25;
  for (const auto& [theirs, ours] : family.fields)
    if (!is_none(said, theirs)) put(c, ours, said[theirs]);
  if (turns) apply_rope(c, said);
  if (is_llama_like(m) && !is_phi(m) && m.rotary_percentage != 1)
    text::refuse("partial_rotary_factor is {}: expected 1", m.rotary_percentage);
  apply_window(c, said, family.type);
  const double dropped = said.value("embd_pdrop", 0.0);
  return dropped == 0 ? "" : fmt::format("embd_pdrop {} has no effect here: embeddings are not dropped", dropped);
}

// The text of a setting as a JSON value: numbers and booleans parse as JSON, any other text is a string.
json value_of(const std::string& text) {
  const json parsed = json::parse(text, nullptr, false);
  return parsed.is_discarded() ? json(text) : parsed;
}

json rope_of(const ModelConfig& m) {
  const RopeScaling& s = m.rope_scaling;
  json rope{{"rope_type", s.type}};
  if (s.type != "default") rope["factor"] = s.factor;
  if (s.type == "llama3") rope["low_freq_factor"] = s.low_frequency, rope["high_freq_factor"] = s.high_frequency;
  if (s.original_positions > 0) rope["original_max_position_embeddings"] = s.original_positions;
  if (s.type == "longrope") rope["short_factor"] = s.short_factors, rope["long_factor"] = s.long_factors;
  if (s.type == "longrope" && s.attention_factor > 0) rope["attention_factor"] = s.attention_factor;
  if (s.type != "yarn") return rope;
  rope["beta_fast"] = s.beta_fast, rope["beta_slow"] = s.beta_slow, rope["truncate"] = s.truncate;
  for (const auto& [field, value] :
       {std::pair{"attention_factor", s.attention_factor}, {"mscale", s.mscale}, {"mscale_all_dim", s.mscale_all_dim}})
    if (value > 0) rope[field] = value;
  return rope;
}

// Writes the fields of rotary positions twice, for older readers and for newer ones.
void put_rope(json& said, const ModelConfig& m) {
  json rope = rope_of(m);
  if (is_phi(m)) {
    rope["partial_rotary_factor"] = said["partial_rotary_factor"] = m.rotary_percentage;
    if (m.rope_scaling.type == "longrope") said["original_max_position_embeddings"] = m.rope_scaling.original_positions;
  }
  if (m.architecture == "gpt_neox") {
    said["rotary_pct"] = m.rotary_percentage, said["rotary_emb_base"] = m.rope_theta;
    rope["partial_rotary_factor"] = m.rotary_percentage;
  } else {
    said["rope_theta"] = m.rope_theta;
    said["rope_scaling"] = m.rope_scaling.type == "default" ? json() : rope;
  }
  rope["rope_theta"] = m.rope_theta;
  said["rope_parameters"] = rope;
}

json made(const StepConfig& config) {
  const HfFamily& family = hf_family_of(config);
  const ModelConfig& model = config.model;
  JobConfig c;
  c.step = config;
  json said{{"model_type", family.type}, {"architectures", {family.class_name}}};
  std::map<std::string, std::string> settings;
  for (const Setting& s : settings_of(c)) settings[s.key] = s.text;
  for (const auto& [theirs, ours] : family.fields)
    if (const auto found = settings.find(canonical_key(ours)); found != settings.end())
      said[theirs] = value_of(found->second);
  for (const HfSupportedValues& e : family.expected) said[e.field] = e.served[0];
  said["initializer_range"] = model.initializer_range;
  // Where 0 stands for a value that follows from other settings, that value is written.
  const bool gpt2 = model.architecture == "gpt3";
  said[gpt2 ? "n_inner" : "intermediate_size"] = model.inner();
  const bool grouped = is_llama_like(model);
  if (said.contains("moe_intermediate_size") && config.experts.inner == 0)
    said["moe_intermediate_size"] = model.inner();
  if (grouped) {
    said["num_key_value_heads"] = model.kv_heads(), said["head_dim"] = model.head_size();
    said["sliding_window"] = model.sliding_window > 0 ? json(model.sliding_window) : json();
    if (model.qkv_bias || model.qk_norm) {
      said["use_sliding_window"] = model.sliding_window > 0;
      said["max_window_layers"] = model.sliding_window > 0 ? 0 : model.num_layers;
    }
  }
  if (grouped || model.architecture == "gpt_neox") put_rope(said, model);
  return said;
}

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) text::refuse("cannot read {}", path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string apply_hf_text(JobConfig& config, const std::string& name, const std::string& text) {
  try {
    const json said = json::parse(text);
    if (!said.is_object()) throw std::invalid_argument("expected an object");
    return apply_json(config, said);
  } catch (const std::exception& e) {
    text::refuse("{}: {}", name, e.what());
  }
}

std::string apply_hf_config(JobConfig& config, const std::filesystem::path& path) {
  const auto file = std::filesystem::is_directory(path) ? path / "config.json" : path;
  return apply_hf_text(config, file.string(), text_of_file(file));
}

std::string hf_config_text(const StepConfig& config, const std::string& base, const std::string& type) {
  json said = made(config);
  if (!base.empty()) {
    json old = json::parse(base);
    JobConfig theirs;
    apply_hf_text(theirs, "config.json", base);
    JobConfig ours;
    ours.step = config;
    const auto texts = [](const JobConfig& c) {
      std::string all;
      for (const Setting& s : settings_of(c))
        if (s.resumed == ChangeOnResume::model) all += s.key + " " + s.text + "\n";
      return all;
    };
    if (texts(theirs) != texts(ours)) old.update(said);
    said = std::move(old);
  }
  said[said.contains("dtype") ? "dtype" : "torch_dtype"] = type;
  return said.dump(2) + "\n";
}

}  // namespace trellis::train
