#include "train/trainer/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

// Checkpoints are moved first: if the process dies in between, no run resumes from what is left.
constexpr std::array files = {"checkpoints", "tensorboard", "metrics.csv", "loss.svg"};

constexpr std::string_view version = "version_";

// How long to wait for the lock: a job that was killed just now may hold it until its process is gone.
constexpr std::chrono::seconds patience{1};

std::string this_process() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", getpid(), host.data());
}

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  fs::create_directories(path_);
  const fs::path name = path_ / "lock";
  fd_ = open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), name.string());
  try {
    lock();
  } catch (...) {
    close(fd_);
    throw;
  }
}

RunFolder::~RunFolder() { close(fd_); }

void RunFolder::lock() {
  const auto deadline = steady_clock::now() + patience;
  while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;
    if (steady_clock::now() >= deadline) {
      std::ifstream in(path_ / "lock");
      std::string holder;
      std::getline(in, holder);
      text::refuse("{} belongs to a job that runs, {}: expected a folder of its own, by `name` or exp_manager.exp_dir",
                   path_.string(), holder.empty() ? "of an unknown process" : holder);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  locked_ = true;
  // The file names this process, for the error message of another job. If that cannot be written, the lock still holds.
  const std::string holder = this_process() + "\n";
  if (ftruncate(fd_, 0) == 0) static_cast<void>(!pwrite(fd_, holder.data(), holder.size(), 0));
}

bool RunFolder::used() const {
  return std::ranges::any_of(files, [&](const char* file) {
    const fs::path there = path_ / file;
    return fs::exists(there) && !fs::is_empty(there);
  });
}

fs::path RunFolder::set_aside() {
  std::int64_t next = 0;
  for (const auto& each : fs::directory_iterator(path_)) {
    const std::string name = each.path().filename();
    if (!name.starts_with(version)) continue;
    std::string_view rest = std::string_view(name).substr(version.size());
    next = std::max(next, text::take_number<std::int64_t>(rest).value_or(-1) + 1);
  }
  const fs::path to = path_ / fmt::format("{}{}", version, next);
  fs::create_directory(to);
  for (const char* file : files)
    if (fs::exists(path_ / file)) fs::rename(path_ / file, to / file);
  return to;
}

}  // namespace trellis::train
