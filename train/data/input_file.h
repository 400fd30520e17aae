// A file that is read piece by piece. It is not mapped: reading a mapped page that a file no longer has ends the
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace trellis::train {

class InputFile {
 public:
  explicit InputFile(const std::filesystem::path&);  // throws system_error; invalid_argument for a folder
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::size_t size() const { return size_; }  // when it was opened
  // Throws system_error; runtime_error that names both sizes where the file was cut short since it was opened.
  void read(std::size_t first, std::size_t bytes, void* out) const;
  std::string whole() const;
  std::uint32_t checksum(std::uint32_t before = 0) const;  // CRC-32C, continued from that of earlier data, `before`

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::size_t size_ = 0;
};

}  // namespace trellis::train
