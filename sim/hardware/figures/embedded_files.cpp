#include "sim/hardware/figures/embedded_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "text/nearest.h"
#include "text/refuse.h"

namespace trellis::sim {

std::vector<std::string> data_names(std::string_view kind) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : data_files())
    if (file.kind == kind) names.emplace_back(file.name);
  std::ranges::sort(names);
  return names;
}

bool has_data(std::string_view kind, std::string_view name) {
  return std::ranges::any_of(data_files(), [&](const EmbeddedFile& f) { return f.kind == kind && f.name == name; });
}

std::string_view data_text(std::string_view kind, std::string_view name) {
  for (const EmbeddedFile& file : data_files())
    if (file.kind == kind && file.name == name) return file.text;
  text::refuse("no '{}' among the {}: there are {}{}", name, kind, fmt::join(data_names(kind), ", "),
               text::did_you_mean(name, data_names(kind)));
}

}  // namespace trellis::sim
