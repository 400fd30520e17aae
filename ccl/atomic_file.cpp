#include "ccl/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

namespace trellis::ccl {

AtomicFile::AtomicFile(std::filesystem::path path, std::filesystem::path draft, mode_t permissions)
    : path_(std::move(path)), draft_(std::move(draft)) {
  unlink(draft_.c_str());  // left by a process that was killed
  fd_ = open(draft_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), (errno == EEXIST ? draft_ : path_).string());
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(draft_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail();
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

// Fails if close() does, too: some file systems report only then that the disk is full.
void AtomicFile::finish() {
  if (close(std::exchange(fd_, -1)) == 0 && rename(draft_.c_str(), path_.c_str()) == 0) return;
  const int error = errno;
  unlink(draft_.c_str());
  errno = error;
  fail();
}

void AtomicFile::finish_safe() {
  if (fsync(fd_) != 0) fail();
  finish();
  const std::filesystem::path folder = path_.parent_path();
  const int kept = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (kept < 0) return;
  fsync(kept);
  close(kept);
}

void AtomicFile::fail() const { throw std::system_error(errno, std::generic_category(), path_.string()); }

std::filesystem::path unforeseen_draft(const std::filesystem::path& path) {
  std::random_device random;
  return fmt::format("{}.{:08x}{:08x}.part", path.string(), random(), random());
}

}  // namespace trellis::ccl
