// The hardware's data files, embedded in the library: chips/trn2.chip is ("chips", "trn2").
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::sim {

struct EmbeddedFile {
  std::string_view kind;  // the folder: chips, machines, published
  std::string_view name;  // the file's name without its extension
  std::string_view text;
};

std::span<const EmbeddedFile> data_files();

std::vector<std::string> data_names(std::string_view kind);  // sorted
// throws invalid_argument and lists the known names
std::string_view data_text(std::string_view kind, std::string_view name);
bool has_data(std::string_view kind, std::string_view name);

}  // namespace trellis::sim
