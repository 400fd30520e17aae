// Tar archives in the ustar form: what a NEFF holds.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::device {

struct TarEntry {
  std::string name;
  std::span<const std::byte> bytes;
};

// Returns the regular files; skips all else. Throws invalid_argument with the position in the archive and what was
// expected there.
std::vector<TarEntry> read_tar(std::span<const std::byte>);
void append_tar(std::vector<std::byte>& archive, std::string_view name, std::string_view text);
void end_tar(std::vector<std::byte>& archive);

}  // namespace trellis::device
