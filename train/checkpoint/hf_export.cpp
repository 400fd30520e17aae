#include "train/checkpoint/hf_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "text/refuse.h"
#include "train/checkpoint/hf_tensor_mapping.h"
#include "train/config/hf/hf_config.h"
#include "train/data/input_file.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// Files that are copied from the folder HfExportOptions::like: those of a tokenizer, of its chat template and of the
// settings for generation.
constexpr const char* carried[] = {"tokenizer.json",     "tokenizer_config.json",
                                   "tokenizer.model",    "special_tokens_map.json",
                                   "added_tokens.json",  "vocab.json",
                                   "vocab.txt",          "merges.txt",
                                   "spiece.model",       "chat_template.jinja",
                                   "chat_template.json", "generation_config.json"};

struct Part {
  const Parameter* parameter;
  HfTensorMapping place;
};

class Exporting {
 public:
  Exporting(const CheckpointReader& source, const StepConfig& config, const HfExportOptions& options)
      : source_(source), options_(options), alpha_(alpha_of(source, options.merge)), step_(laid_out(config)) {
    for (const Parameter& p : step_.parameters.all()) {
      HfTensorMapping place = hf_place(config, p.name);
      const std::string name = place.name;
      tensors_[name].push_back({&p, std::move(place)});
    }
    bool adapters = false;
    for (const std::string& name : source_.names()) adapters = adapters || name.find(".lora_") != name.npos;
    if (adapters != options_.merge.merge)
      throw std::invalid_argument(adapters ? "the checkpoint has adapters: --merge adds them to the weights"
                                           : "the checkpoint has no adapters to merge");
  }

  // The files, and which tensors each one has.
  std::vector<std::vector<std::string>> planned() const {
    std::vector<std::vector<std::string>> files;
    std::uint64_t bytes = 0;
    for (const auto& [name, parts] : tensors_) {
      const std::uint64_t more = theirs(parts).elements() * kernels::size_of(type_of(parts));
      if (files.empty() || bytes + more > options_.file_bytes) files.emplace_back(), bytes = 0;
      files.back().push_back(name);
      bytes += more;
    }
    return files;
  }

  // Writes a file; returns its tensors' bytes.
  std::uint64_t write(const fs::path& path, const std::vector<std::string>& names) const {
    std::vector<ShardTensor> tensors;
    std::vector<std::vector<std::byte>> bytes;
    std::uint64_t total = 0;
    for (const std::string& name : names) {
      const std::vector<Part>& parts = tensors_.at(name);
      const DType type = type_of(parts);
      bytes.push_back(encoded(type, values_of(parts)));
      tensors.push_back({name, type, theirs(parts), bytes.back().data()});
      total += bytes.back().size();
    }
    write_shard(path, tensors);
    return total;
  }

  DType type() const { return type_of(tensors_.begin()->second); }

 private:
  static RankStep laid_out(const StepConfig& config) {
    StepConfig c;
    c.model = config.model, c.experts = config.experts;
    c.seq_length = 2;
    return lay_out(c, 1, 0, StepPurpose::evaluate);
  }

  static TensorSlice theirs(const std::vector<Part>& parts) { return parts[0].place.theirs(parts[0].parameter->slice); }

  DType type_of(const std::vector<Part>& parts) const {
    if (options_.type.empty()) return source_.type(parts[0].parameter->name);
    for (DType t : {DType::f32, DType::bf16, DType::f16})
      if (options_.type == kernels::name(t)) return t;
    text::refuse("type '{}': expected f32, bf16 or f16", options_.type);
  }

  std::vector<float> values_of(const std::vector<Part>& parts) const {
    const TensorSlice whole = theirs(parts);
    const DType type = type_of(parts);
    std::vector<float> out(whole.elements());
    for (const Part& p : parts) {
      const TensorSlice& own = p.parameter->slice;
      std::vector<float> values(own.elements());
      source_.read(widest(source_, p.parameter->name, type), own, values.data());
      if (options_.merge.merge) merge_adapter(source_, p.parameter->name, alpha_, type, values);
      for (std::size_t r = 0; r < own.rows; ++r)
        for (std::size_t c = 0; c < own.columns; ++c) {
          const std::size_t at = p.place.row(r);
          out[p.place.transposed ? c * whole.columns + at : at * whole.columns + c] = values[r * own.columns + c];
        }
    }
    return out;
  }

  const CheckpointReader& source_;
  const HfExportOptions& options_;
  double alpha_;
  RankStep step_;
  std::map<std::string, std::vector<Part>> tensors_;  // by Hugging Face's names
};

const char* torch_name(DType t) {
  return t == DType::bf16 ? "bfloat16" : t == DType::f16 ? "float16" : t == DType::f64 ? "float64" : "float32";
}

}  // namespace

std::vector<std::string> export_hf(const CheckpointReader& source, const StepConfig& config, const fs::path& folder,
                                   const HfExportOptions& options) {
  if (fs::exists(folder) && !(fs::is_directory(folder) && fs::is_empty(folder)))
    text::refuse("{} is there already: expected a new or an empty folder", folder.string());
  const Exporting all(source, config, options);
  const auto files = all.planned();
  fs::create_directories(folder);
  std::vector<std::string> written;
  json map = json::object();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    written.push_back(files.size() == 1 ? "model.safetensors"
                                        : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size()));
    bytes += all.write(folder / written.back(), files[i]);
    for (const std::string& name : files[i]) map[name] = written.back();
  }
  if (files.size() > 1) {
    written.emplace_back("model.safetensors.index.json");
    write_whole(folder / written.back(),
                json{{"metadata", {{"total_size", bytes}}}, {"weight_map", map}}.dump(2) + "\n");
  }
  const bool like = !options.like.empty();
  const std::string base = like ? InputFile(options.like / "config.json").whole() : "";
  for (const char* name : carried)
    if (like && fs::exists(options.like / name)) {
      fs::copy_file(options.like / name, folder / name);
      written.emplace_back(name);
    }
  written.emplace_back("config.json");
  write_whole(folder / written.back(), hf_config_text(config, base, torch_name(all.type())));
  return written;
}

}  // namespace trellis::train
