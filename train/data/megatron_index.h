// Megatron's .idx: how many bytes a token of the .bin beside it has, and where documents begin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::train {

struct MegatronIndex {
  std::size_t width = 0;                 // bytes of a token
  std::vector<std::uint64_t> documents;  // the first token of each, and one past the last
};

// name: of the file, for messages. data_bytes: of the .bin. Throws invalid_argument for a damaged index, one that was
// cut short, and one that is of other data.
MegatronIndex megatron_index(const std::string& name, std::string_view bytes, std::uint64_t data_bytes);

}  // namespace trellis::train
