#include "tools/program/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "text/read_file.h"

namespace trellis::tools {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

[[noreturn]] void trouble(const std::string& doing) { throw std::system_error(errno, std::generic_category(), doing); }

File open(const std::string& path, const char* mode, const std::string& doing) {
  File file(std::fopen(path.c_str(), mode));
  if (!file) trouble(doing);
  return file;
}

void write(std::FILE* file, std::string_view text, const std::string& doing) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) trouble(doing);
  if (std::fflush(file) != 0) trouble(doing);
}

// Whether it is a device, a pipe, or an open file by its name in /dev or /proc, such as /dev/fd/3: these can't be
// replaced by renaming. Files in /dev/shm are like any others.
bool is_stream(const std::string& path) {
  struct stat s = {};
  if (stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode)) return !S_ISDIR(s.st_mode);
  return path.starts_with("/proc/") || (path.starts_with("/dev/") && !path.starts_with("/dev/shm/"));
}

// A temporary file beside the one that it will replace, on the same file system. The destructor removes it unless it
// has replaced that one.
class Draft {
 public:
  Draft(const std::string& path, std::string doing) : doing_(std::move(doing)) {
    struct stat s = {};
    const bool there = stat(path.c_str(), &s) == 0;
    if (there && S_ISDIR(s.st_mode)) errno = EISDIR, trouble(doing_);
    if (there && access(path.c_str(), W_OK) != 0) trouble(doing_);
    target_ = there ? std::filesystem::canonical(path).string() : path;
    path_ = fmt::format("{}.{}.part", target_, getpid());
    unlink(path_.c_str());  // left by a killed process that had the same number
    file_ = open(path_, "wbx", doing_);
    if (there && fchmod(fileno(file_.get()), s.st_mode & 07777) != 0) {
      const int error = errno;
      leave();
      errno = error;
      trouble(doing_);
    }
  }
  ~Draft() { leave(); }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void replace(std::string_view text) {
    write(file_.get(), text, doing_);
    if (fsync(fileno(file_.get())) != 0) trouble(doing_);
    if (rename(path_.c_str(), target_.c_str()) != 0) trouble(doing_);
    file_.reset();
    const std::filesystem::path folder = std::filesystem::path(target_).parent_path();
    const File kept(std::fopen(folder.empty() ? "." : folder.c_str(), "r"));  // the folder may be unreadable
    if (kept && fsync(fileno(kept.get())) != 0 && errno != EINVAL)
      trouble(doing_);  // EINVAL: its file system does not support sync
  }

 private:
  void leave() {
    if (file_) unlink(path_.c_str());
    file_.reset();
  }

  std::string doing_, target_, path_;
  File file_;
};

}  // namespace

void write_output(const std::string& path, std::string_view text) {
  if (path.empty() || path == "-") return write(stdout, text, "cannot write standard output");
  const std::string doing = "cannot write '" + path + "'";
  if (is_stream(path)) return write(open(path, "wb", doing).get(), text, doing);
  Draft(path, doing).replace(text);
}

void expect_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  const std::string doing = "cannot write '" + path + "'";
  if (!is_stream(path))
    Draft(path, doing);
  else if (access(path.c_str(), W_OK) != 0)  // not opened: closing a pipe tells its reader that the text has ended
    trouble(doing);
}

std::string read_input(const std::string& path) {
  return path == "-" ? text::read_file(stdin, "standard input") : text::read_file(path);
}

}  // namespace trellis::tools
