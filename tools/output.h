// Where a command's text goes. Everything is written through here, so that a full disk is an error and not a silence.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trellis::tools {

// Writes to the file, or to standard output for "" and "-". Throws std::system_error when not all of it arrives.
void write_output(const std::string& path, std::string_view text);

// Throws what write_output would throw if it can't even begin: before long work, and not after it.
void expect_writable(const std::string& path);

// The most that is read of anything, so that what never ends ends in a sentence.
inline constexpr std::size_t most_input = std::size_t{1} << 30;

// The whole file, or all of standard input for "-". Throws std::system_error, also for more than most_input bytes.
std::string read_input(const std::string& path);

}  // namespace trellis::tools
