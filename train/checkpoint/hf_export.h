// Exports a checkpoint as a folder of Hugging Face: config.json, weights in files of safetensors with an index, and the
// files of a tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/checkpoint/save_load.h"

namespace trellis::train {

struct HfExportOptions {
  std::filesystem::path like = {};           // a folder whose tokenizer and further fields of config.json are copied
  std::uint64_t file_bytes = 5'000'000'000;  // of weights at most, unless one tensor is larger
  std::string type = {};                     // f32, bf16 or f16; empty: as the checkpoint has it
  AdapterMergeOptions merge = {};
};

// Returns the names of the files. Throws invalid_argument where the folder is not empty, or the checkpoint lacks a
// part of the model.
std::vector<std::string> export_hf(const CheckpointReader&, const StepConfig&, const std::filesystem::path& folder,
                                   const HfExportOptions& = {});

}  // namespace trellis::train
