#include "train/data/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "kernels/types/crc32c.h"
#include "text/refuse.h"

namespace trellis::train {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20;

std::system_error failed(int error, const std::filesystem::path& path) {
  return {error, std::generic_category(), path.string()};
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe that nobody writes to would block
  if (fd_ < 0) throw failed(errno, path);
  struct stat s = {};
  const int error = fstat(fd_, &s) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(s.st_mode)) {
    size_ = static_cast<std::size_t>(s.st_size);
    return;
  }
  close(fd_);
  if (error != 0) throw failed(error, path);
  text::refuse("{} is {}: expected a file", path.string(), S_ISDIR(s.st_mode) ? "a folder" : "no regular file");
}

InputFile::~InputFile() { close(fd_); }

void InputFile::read(std::size_t first, std::size_t bytes, void* out) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = pread(fd_, static_cast<std::byte*>(out) + done, bytes - done, static_cast<off_t>(first + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw failed(errno, path_);
    if (n == 0) {
      struct stat s = {};
      const auto now = fstat(fd_, &s) == 0 ? static_cast<std::size_t>(s.st_size) : first + done;
      throw std::runtime_error(
          fmt::format("{} was cut short while it was in use: it has {} bytes, and had {}", path_.string(), now, size_));
    }
    done += static_cast<std::size_t>(n);
  }
}

std::string InputFile::whole() const {
  std::string text(size_, '\0');
  read(0, size_, text.data());
  return text;
}

std::uint32_t InputFile::checksum(std::uint32_t before) const {
  std::vector<std::byte> bytes(std::min(piece, size_));
  std::uint32_t crc = before;
  for (std::size_t at = 0; at < size_; at += piece) {
    const std::size_t n = std::min(piece, size_ - at);
    read(at, n, bytes.data());
    crc = kernels::crc32c(std::span(bytes).first(n), crc);
  }
  return crc;
}

}  // namespace trellis::train
