// Tells whether another process still runs, by pidfd, and whether it is stopped. One descriptor per process, shared by
// all communicators.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

namespace trellis::ccl {

class Process {
 public:
  static std::shared_ptr<Process> of(pid_t);  // the process that has this pid now
  explicit Process(pid_t);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  bool runs() const;  // false only if it is known to have ended

 private:
  const pid_t pid_;
  const int descriptor_;  // negative: could not be opened
  const bool gone_;       // it had ended before
};

bool process_stopped(std::int64_t process);  // on this host, by a signal or by a debugger

}  // namespace trellis::ccl
