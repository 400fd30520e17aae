// A file that is written whole or not at all: it is written under another name, and renamed at the end.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>

namespace trellis::ccl {

// Throws system_error that names the file. A draft that was not finished is removed. A link that somebody has put in
// the draft's or the file's place is never followed.
class AtomicFile {
 public:
  AtomicFile(std::filesystem::path, std::filesystem::path draft, mode_t permissions);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void finish();       // renames the draft to the file's name
  void finish_safe();  // the same, but the bytes are on disk before, and the name when this returns

 private:
  [[noreturn]] void fail() const;

  const std::filesystem::path path_, draft_;
  int fd_ = -1;
};

// A random name in the path's folder, which nobody can predict.
std::filesystem::path unforeseen_draft(const std::filesystem::path&);

}  // namespace trellis::ccl
