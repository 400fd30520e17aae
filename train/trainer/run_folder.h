// The folder of a run: one job at a time, and the files of one run. An earlier run is kept beside it, as version_N.
#pragma once

#include <filesystem>

namespace trellis::train {

class RunFolder {
 public:
  // Makes the folder where there is none, and locks it until this object is destroyed or the process dies. Throws
  // invalid_argument that names the process that holds the lock; system_error where the folder cannot be made.
  explicit RunFolder(std::filesystem::path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  bool locked() const { return locked_; }  // false: the file system has no locks
  bool used() const;                       // a run has left files here
  // Moves the run's files into the folder of the next version_N, counted from 0, and returns that folder.
  std::filesystem::path set_aside();

 private:
  void lock();
  std::filesystem::path path_;
  int fd_ = -1;
  bool locked_ = false;
};

}  // namespace trellis::train
