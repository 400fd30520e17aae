#include "kernels/dispatch/control_groups.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "text/number_parsing.h"
#include "text/words.h"

namespace trellis::kernels {
namespace {

// Whether a list such as "cpu,cpuacct" has the controller.
bool has(std::string_view list, std::string_view controller) {
  return std::ranges::count(text::split(list, ','), controller) > 0;
}

// A group as a line of /proc/self/cgroup tells it: "4:cpu,cpuacct:/a/b", or "0::/a/b" of version 2.
struct Group {
  std::string controllers;
  std::string path;  // without the last slash
};
Group group_of(const std::string& processes, const std::string& controller) {
  std::ifstream file(processes + "/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (has(controllers, controller) && path.starts_with('/')) return {controllers, path.size() == 1 ? "" : path};
  }
  return {controller, ""};
}

}  // namespace

std::vector<std::string> group_folders(const std::string& processes, const std::string& groups,
                                       const std::string& controller) {
  Group group = group_of(processes, controller);
  std::vector<std::string> all;
  for (;; group.path.erase(group.path.rfind('/'))) {
    // The folder of controllers that are mounted together has the names of all (cpu,cpuacct), and each single name is
    // mostly a link to it. Either may be missing, so both paths are returned.
    all.push_back(groups + (controller.empty() ? "" : "/" + group.controllers) + group.path);
    if (group.controllers != controller) all.push_back(groups + "/" + controller + group.path);
    if (group.path.empty()) return all;
  }
}

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::string_view rest = text::trimmed(text);
  return text::take_number<std::uint64_t>(rest);
}

std::string line_of_file(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<std::uint64_t> number_of_file(const std::string& path) { return number_in(line_of_file(path)); }

std::optional<std::uint64_t> number_after(const std::string& key, const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return number_in(line.substr(key.size()));
  return std::nullopt;
}

}  // namespace trellis::kernels
