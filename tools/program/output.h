// Where a command's text goes. All output is written through here, so that a full disk is reported as an error.
#pragma once

#include <string>
#include <string_view>

namespace trellis::tools {

// Writes to the file, or to standard output for "" and "-". Throws std::system_error when not all of it could be
// written. A file is written under another name and renamed when all of it is on disk: readers see the old text or the
// new one, and after an error or an interruption the old one.
void write_output(const std::string& path, std::string_view text);

// Call it before long work: throws what write_output would throw if it could not even begin. Leaves the file as it is,
// or absent.
void expect_writable(const std::string& path);

// The whole file, or all of standard input for "-". Throws as text::read_file does.
std::string read_input(const std::string& path);

}  // namespace trellis::tools
