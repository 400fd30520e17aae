// Any bytes as config.json, and as an index of weights: refused with invalid_argument, or every file that the index
// names is one of the folder's own.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "train/checkpoint/hf_index.h"
#include "train/config/hf/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::train;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    for (const std::string& file : parse_hf_index("index", text).files)
      if (file.empty() || file == ".." || file.find('/') != file.npos) std::abort();
  } catch (const std::invalid_argument&) {
  }
  try {
    JobConfig config;
    apply_hf_text(config, "config.json", text);
    hf_config_text(config.step, text, "float32");
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
