#include "kernels/dispatch/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>

namespace trellis::kernels {
namespace {

// Where one version of control groups tells a group's memory: its controller's name, two files, and a key in
// memory.stat.
struct GroupFiles {
  const char *controller, *limit, *used, *cache;
};
constexpr GroupFiles versions[] = {
    {"memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file "},
    {"", "/memory.max", "/memory.current", "inactive_file "}};

// How much more memory the group can get: its limit less what it uses. Its inactive cached files do not count as used:
// the system frees them when memory is needed.
std::uint64_t room_in_group(const std::string& folder, const GroupFiles& files) {
  const auto limit = number_of_file(folder + files.limit), used = number_of_file(folder + files.used);
  if (!limit || !used) return unknown_memory;
  const std::uint64_t held = *used - std::min(*used, number_after(files.cache, folder + "/memory.stat").value_or(0));
  return *limit - std::min(*limit, held);
}

std::uint64_t limit_of_group(const std::string& folder, const GroupFiles& files) {
  return number_of_file(folder + files.limit).value_or(unknown_memory);
}

// The whole machine's memory, for where /proc isn't mounted.
std::uint64_t system_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages <= 0 || bytes <= 0 ? unknown_memory
                                  : static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes);
}

// The smallest of the machine's value and of each group's.
std::uint64_t least(const char* of_machine, const std::string& processes, const std::string& groups,
                    const std::function<std::uint64_t(const std::string&, const GroupFiles&)>& of_group) {
  std::uint64_t found = unknown_memory;
  if (const auto kib = number_after(of_machine, processes + "/meminfo"))
    found = std::min(*kib, unknown_memory >> 10) << 10;
  for (const GroupFiles& files : versions)
    for (const std::string& folder : group_folders(processes, groups, files.controller))
      found = std::min(found, of_group(folder, files));
  return found;
}

}  // namespace

std::uint64_t available_memory(const std::string& processes, const std::string& groups) {
  return least("MemAvailable:", processes, groups, room_in_group);
}

std::uint64_t total_memory(const std::string& processes, const std::string& groups) {
  const std::uint64_t told = least("MemTotal:", processes, groups, limit_of_group);
  return told == unknown_memory ? system_memory() : told;
}

}  // namespace trellis::kernels
