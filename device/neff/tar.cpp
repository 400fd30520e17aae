#include "device/neff/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "text/refuse.h"

namespace trellis::device {
namespace {

constexpr std::size_t block = 512;
constexpr std::size_t name_bytes = 100, size_at = 124, checksum_at = 148, type_at = 156, magic_at = 257,
                      prefix_at = 345, prefix_bytes = 155;

[[noreturn]] void refuse(std::size_t at, std::string_view what, std::string_view expected) {
  text::refuse("archive, byte {}: {}: expected {}", at, what, expected);
}

std::string text_of(std::span<const std::byte> field) {
  const auto* const begin = reinterpret_cast<const char*>(field.data());
  return {begin, std::find(begin, begin + field.size(), '\0')};
}

std::optional<std::uint64_t> octal(std::span<const std::byte> field) {
  std::uint64_t value = 0;
  bool digits = false;
  for (const std::byte b : field) {
    const char c = std::to_integer<char>(b);
    if (c == ' ' && !digits) continue;
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
    digits = true;
  }
  return digits ? std::optional(value) : std::nullopt;
}

std::uint64_t checksum(std::span<const std::byte> header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block; ++i)
    sum += i >= checksum_at && i < checksum_at + 8 ? ' ' : std::to_integer<std::uint64_t>(header[i]);
  return sum;
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

std::vector<TarEntry> read_tar(std::span<const std::byte> archive) {
  std::vector<TarEntry> files;
  for (std::size_t at = 0; at < archive.size();) {
    if (archive.size() - at < block) refuse(at, fmt::format("{} bytes are left", archive.size() - at), "512");
    const auto header = archive.subspan(at, block);
    if (is_zero(header)) return files;
    const auto sum = octal(header.subspan(checksum_at, 8));
    if (!sum || *sum != checksum(header)) refuse(at, "the header's checksum is wrong", "a tar header");
    const auto size = octal(header.subspan(size_at, 12));
    if (!size) refuse(at, "the size is no octal number", "the bytes of a file");
    const std::size_t room = archive.size() - at - block;
    if (*size > room) refuse(at, fmt::format("a file of {} bytes", *size), fmt::format("at most {}", room));
    std::string name = text_of(header.subspan(0, name_bytes));
    if (const std::string prefix = text_of(header.subspan(prefix_at, prefix_bytes)); !prefix.empty())
      name = prefix + "/" + name;
    const char type = std::to_integer<char>(header[type_at]);
    if (type == '0' || type == '\0') files.push_back({std::move(name), archive.subspan(at + block, *size)});
    at += block + std::min<std::uint64_t>((*size + block - 1) / block * block, room);
  }
  return files;
}

void append_tar(std::vector<std::byte>& archive, std::string_view name, std::string_view text) {
  if (name.size() >= name_bytes) text::refuse("{}: a name of at most 99 characters", name);
  std::array<std::byte, block> header{};
  const auto put = [&](std::size_t at, std::string_view value) {
    std::memcpy(&header[at], value.data(), value.size());
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(size_at, fmt::format("{:011o}", text.size()));
  put(136, "00000000000");
  put(type_at, "0");
  put(magic_at, "ustar");
  put(magic_at + 6, "00");
  put(checksum_at, fmt::format("{:06o}", checksum(header)));
  header[checksum_at + 7] = std::byte{' '};
  archive.insert(archive.end(), header.begin(), header.end());
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  archive.insert(archive.end(), bytes, bytes + text.size());
  archive.resize((archive.size() + block - 1) / block * block);
}

void end_tar(std::vector<std::byte>& archive) { archive.resize(archive.size() + 2 * block); }

}  // namespace trellis::device
