#include "tools/machine_typed.h"

#include <algorithm>
#include <filesystem>

#include "sim/import_machine.h"
#include "sim/machine_several.h"
#include "tools/output.h"

namespace trellis::tools {
namespace {

bool is_file(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none);
}

sim::MachineSpec spec_of(const std::string& typed) {
  std::string_view one = typed;
  const auto count = sim::several(one);
  const std::string path(one);
  if (is_file(typed)) return sim::import_machine(typed, read_input(typed));
  if (!count || !is_file(path)) return sim::machine_spec(typed);
  return sim::joined(sim::import_machine(path, read_input(path)), *count, typed);
}

}  // namespace

sim::MachineSpec typed_machine(const std::string& typed, const std::vector<std::string>& changes) {
  sim::MachineSpec spec = spec_of(typed);
  for (const std::string& change : changes) sim::what_if(spec, change);
  return spec;
}

}  // namespace trellis::tools
