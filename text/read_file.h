// Files that are read as a whole.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace trellis::text {

// The most that is read of any file, so that an endless one ends in an error message.
inline constexpr std::size_t most_of_file = std::size_t{1} << 30;

// Throws std::system_error: "cannot read 'PATH'", also where it holds more than most_of_file bytes.
std::string read_file(const std::string& path);
std::string read_file(std::FILE*, const std::string& name);  // reads what is left of the file

}  // namespace trellis::text
