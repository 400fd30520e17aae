#include "train/checkpoint/hf_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "text/refuse.h"
#include "train/data/input_file.h"

namespace trellis::train {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* single = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

// Whether this is the name of a file directly in the folder.
bool is_plain(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

}  // namespace

bool is_hf_folder(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "config.json", error) && !fs::exists(path / "done", error);
}

HfIndex parse_hf_index(const std::string& file, const std::string& text) {
  const json said = json::parse(text, nullptr, false);
  if (!said.is_object() || !said.contains("weight_map") || !said["weight_map"].is_object())
    text::refuse("{}: expected an index: an object with a weight_map", file);
  HfIndex index;
  std::set<std::string> files;
  for (const auto& [tensor, where] : said["weight_map"].items()) {
    if (!where.is_string() || !is_plain(where.get<std::string>()))
      text::refuse("{}: {} is in {}: expected the name of a file of the folder", file, tensor,
                   where.dump(-1, ' ', true, json::error_handler_t::replace));
    index.tensors.emplace_back(tensor, where.get<std::string>());
    files.insert(where.get<std::string>());
  }
  if (files.empty()) text::refuse("{}: its weight_map is empty", file);
  index.files.assign(files.begin(), files.end());
  return index;
}

HfIndex hf_weights(const fs::path& folder) {
  if (fs::exists(folder / single)) return {{single}, {}};
  const fs::path path = folder / index_name;
  if (!fs::exists(path)) {
    for (const char* old : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
      if (fs::exists(folder / old))
        text::refuse("{} has {}, which runs code when it is read: expected safetensors, as save_pretrained writes them",
                     folder.string(), old);
    text::refuse("{}: expected {} or {}", folder.string(), single, index_name);
  }
  HfIndex index = parse_hf_index(path.string(), InputFile(path).whole());
  for (const std::string& name : index.files)
    if (!fs::exists(folder / name)) text::refuse("{} is missing: {} names it", (folder / name).string(), index_name);
  return index;
}

}  // namespace trellis::train
