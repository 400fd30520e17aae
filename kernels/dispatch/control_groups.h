// Finds and reads the files in which Linux describes the control groups (containers, services) that this process is in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trellis::kernels {

inline constexpr const char* system_processes = "/proc";
inline constexpr const char* system_groups = "/sys/fs/cgroup";

// The folders of the process's group and of those around it, innermost first: a limit of each holds for the process.
// `controller`: "memory" or "cpu" of version 1, empty for version 2. A container may see only its own group, as the
// outermost one, so some of the returned folders may not exist.
std::vector<std::string> group_folders(const std::string& processes, const std::string& groups,
                                       const std::string& controller);

// Each reads a number: number_in at the beginning of a text, number_of_file at the beginning of a file's first line,
// number_after behind a key with which a line of the file begins, as in "inactive_file 4096". None for "max", or if
// there is no such file.
std::optional<std::uint64_t> number_in(const std::string& text);
std::optional<std::uint64_t> number_of_file(const std::string& path);
std::optional<std::uint64_t> number_after(const std::string& key, const std::string& path);
std::string line_of_file(const std::string& path);  // the first; empty when there is no such file

}  // namespace trellis::kernels
