// Which files have the weights of a folder of Hugging Face.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace trellis::train {

// Whether the folder has config.json, and no file `done`, which would make it a checkpoint.
bool is_hf_folder(const std::filesystem::path&);

struct HfIndex {
  std::vector<std::string> files;                            // in order of their names
  std::vector<std::pair<std::string, std::string>> tensors;  // each tensor and its file; empty: there is no index
};

// Parses the text of an index; `file` is its name, for errors. Throws invalid_argument: it is no index, or the name of
// a file leads out of the folder.
HfIndex parse_hf_index(const std::string& file, const std::string& text);

// Throws invalid_argument that names what is missing.
HfIndex hf_weights(const std::filesystem::path& folder);

}  // namespace trellis::train
