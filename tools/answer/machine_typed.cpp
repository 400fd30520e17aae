#include "tools/answer/machine_typed.h"

#include <algorithm>
#include <filesystem>

#include "sim/machine/import/import.h"
#include "sim/machine/several.h"
#include "tools/program/output.h"

namespace trellis::tools {
namespace {

bool is_file(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none);
}

// Names of built-in machines and shapes never look like this.
bool is_path(const std::string& word) {
  const bool slash = word.find('/') != word.npos && word.find(':') == word.npos;
  return slash || word.ends_with(".machine") || word.ends_with(".yml") || word.ends_with(".xml");
}

sim::MachineSpec spec_of(const std::string& typed) {
  std::string_view one = typed;
  const auto count = sim::several(one);
  const std::string path(one);
  if (is_file(typed)) return sim::import_machine(typed, read_input(typed));
  if (!is_path(path) && !is_file(path)) return sim::machine_spec(typed);
  sim::MachineSpec spec = sim::import_machine(path, read_input(path));
  return count ? sim::joined(std::move(spec), *count, typed) : spec;
}

}  // namespace

sim::MachineSpec typed_machine(const std::string& typed, const std::vector<std::string>& changes) {
  sim::MachineSpec spec = spec_of(typed);
  for (const std::string& change : changes) sim::what_if(spec, change);
  return spec;
}

}  // namespace trellis::tools
