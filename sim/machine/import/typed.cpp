#include "sim/machine/import/typed.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "sim/machine/import/import.h"
#include "sim/machine/several.h"

namespace trellis::sim {
namespace {

bool is_file(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none);
}

// Names of built-in machines and shapes never look like this.
bool is_path(std::string_view word) {
  const bool slash = word.find('/') != word.npos && word.find(':') == word.npos;
  return slash || word.ends_with(".machine") || word.ends_with(".yml") || word.ends_with(".xml");
}

std::string text_of_file(const std::string& path) {
  const auto check = [&](bool good) {
    if (!good) throw std::system_error(errno, std::generic_category(), "cannot read '" + path + "'");
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  check(file != nullptr);
  std::string text;
  std::array<char, 65536> part;
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), file.get())) text.append(part.data(), n);
  check(std::ferror(file.get()) == 0);
  return text;
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
  MachineSpec spec = path ? machine_of_file(typed, *path, text_of_file(*path)) : machine_spec(typed);
  for (const std::string& change : changes) what_if(spec, change);
  return spec;
}

}  // namespace trellis::sim
