#include "kernels/dispatch/available_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

namespace trellis::kernels {
namespace {

constexpr std::uint64_t unknown = ~std::uint64_t{0};

// The number at the beginning of a text; none for "max".
std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t number = 0;
  const std::size_t at = std::min(text.find_first_not_of(" \t"), text.size());
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> number_of_file(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return number_in(line);
}

// The number after a key at the beginning of a line, as in "MemAvailable:  24 kB" and "inactive_file 4096".
std::optional<std::uint64_t> number_after(const std::string& key, const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return number_in(line.substr(key.size()));
  return std::nullopt;
}

// The files of one version of control groups.
struct GroupFiles {
  std::string mount, limit, used, cache;
};

// Files that were read take memory that the system gives back when it is needed.
std::uint64_t room_in_group(const std::string& folder, const GroupFiles& files) {
  const auto limit = number_of_file(folder + files.limit), used = number_of_file(folder + files.used);
  if (!limit || !used) return unknown;
  const std::uint64_t held = *used - std::min(*used, number_after(files.cache, folder + "/memory.stat").value_or(0));
  return *limit - std::min(*limit, held);
}

// A group's limit holds for all groups in it.
std::uint64_t room_in_groups(const std::string& groups, std::string path, const GroupFiles& files) {
  std::uint64_t least = unknown;
  for (;;) {
    least = std::min(least, room_in_group(groups + files.mount + path, files));
    if (path.empty()) return least;
    path.erase(path.rfind('/'));
  }
}

// The path of this process's group, from a line "4:memory:/a/b", or "0::/a/b" of version 2; without the last slash.
std::string group_path(const std::string& processes, const std::string& controller) {
  std::ifstream file(processes + "/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    if (line.substr(first + 1, second - first - 1) != controller || line[second + 1] != '/') continue;
    const std::string path = line.substr(second + 1);
    return path.size() == 1 ? "" : path;
  }
  return "";
}

}  // namespace

std::uint64_t available_memory(const std::string& processes, const std::string& groups) {
  std::uint64_t least = unknown;
  if (const auto kib = number_after("MemAvailable:", processes + "/meminfo"))
    least = std::min(*kib, unknown >> 10) << 10;
  const GroupFiles second{"", "/memory.max", "/memory.current", "inactive_file "};
  const GroupFiles first{"/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file "};
  least = std::min(least, room_in_groups(groups, group_path(processes, ""), second));
  return std::min(least, room_in_groups(groups, group_path(processes, "memory"), first));
}

}  // namespace trellis::kernels
