// The container of programs: a NEFF's header and tar archive, as documented, with a program of ours inside. The
// instructions of a NEFF that a compiler made have no public encoding, so such a file can be looked into and not run.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::device {

inline constexpr std::size_t neff_header_bytes = 1024;
inline constexpr std::string_view neff_program_file = "trellis/program.txt";

struct NeffHeader {
  std::uint64_t package_version = 2;
  std::uint64_t header_bytes = neff_header_bytes;
  std::uint64_t data_bytes = 0;  // of the archive
  std::uint64_t major = 2, minor = 0;
  std::string build;  // at most 127 characters
  std::uint32_t cores = 1;
  std::array<std::uint8_t, 32> hash = {};
  std::array<std::uint8_t, 16> uuid = {};
  std::string name;  // at most 255 characters
  std::uint32_t cores_wanted = 1;
  std::array<std::uint8_t, 64> cores_of_nodes = {};
  std::uint64_t features = 0;
  std::uint32_t logical_size = 1;  // physical cores of one logical core
};

struct NeffEntry {
  std::string name;
  std::span<const std::byte> bytes;  // of the container that was read
};

struct Neff {
  NeffHeader header;
  std::vector<NeffEntry> files;
  bool is_compressed = false;  // gzip: its files are not listed

  const NeffEntry* find(std::string_view name) const;
  bool is_ours() const { return find(neff_program_file) != nullptr; }
};

// A well-formed container that holds no program of ours.
struct ForeignNeffError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

Neff read_neff(std::span<const std::byte>);  // throws invalid_argument with the place, the value and what was expected
std::string_view program_of(const Neff&);    // its text; throws ForeignNeffError
// A container with this program. The same program gives the same bytes.
std::vector<std::byte> write_neff(std::string_view name, std::string_view program, std::uint32_t physical_cores);

}  // namespace trellis::device
