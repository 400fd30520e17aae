#include "sim/cluster/machine/import/machine_argument.h"

#include <filesystem>
#include <system_error>

#include "sim/cluster/machine/import/import.h"
#include "sim/cluster/machine/machine_cluster.h"
#include "text/printable.h"
#include "text/read_file.h"

namespace trellis::sim {
namespace {

bool is_file(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none);
}

// Whether the word looks like a path, as no name of a built-in machine and no shape does.
bool is_path(std::string_view word) {
  const bool slash = word.find('/') != word.npos && word.find(':') == word.npos;
  return slash || word.ends_with(".machine") || word.ends_with(".yml") || word.ends_with(".xml");
}

}  // namespace

std::optional<std::string> machine_file(const std::string& typed) {
  if (is_file(typed)) return typed;
  std::string_view one = typed;
  several(one);
  if (is_path(one) || is_file(std::string(one))) return std::string(one);
  return std::nullopt;
}

MachineSpec machine_of_file(const std::string& typed, const std::string& path, std::string_view text) {
  MachineSpec spec = import_machine(path, text);
  std::string_view one = typed;
  const auto count = several(one);
  return count && one == path ? joined(std::move(spec), *count, typed) : spec;
}

MachineSpec typed_machine(const std::string& typed, const std::vector<std::string>& changes) {
  const auto path = machine_file(typed);
  const auto read = [&] {
    std::string text = text::read_file(*path);
    text::expect_text(*path, text);
    return text;
  };
  MachineSpec spec = path ? machine_of_file(typed, *path, read()) : machine_spec(typed);
  for (const std::string& change : changes) what_if(spec, change);
  return spec;
}

}  // namespace trellis::sim
