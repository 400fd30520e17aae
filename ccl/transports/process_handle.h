// Tells whether another process still runs, by pidfd, and whether it is stopped. One descriptor per process, shared by
// all communicators.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>

namespace trellis::ccl {

class ProcessHandle {
 public:
  static std::shared_ptr<ProcessHandle> of(pid_t);  // the process that has this pid now
  explicit ProcessHandle(pid_t);
  ~ProcessHandle();
  ProcessHandle(const ProcessHandle&) = delete;
  ProcessHandle& operator=(const ProcessHandle&) = delete;
  bool runs() const { return !ends_within({}); }
  bool ends_within(std::chrono::milliseconds) const;  // false where that cannot be known

 private:
  const pid_t pid_;
  const int descriptor_;  // negative: could not be opened
  const bool gone_;       // it had ended before this was made
};

// Whether the process's main thread has ended or is about to: the kernel ends threads one by one, and a thread's
// descriptors are closed before anybody is told of its end.
bool main_thread_ends(pid_t);

bool process_stopped(std::int64_t process);  // on this host, by a signal or by a debugger

}  // namespace trellis::ccl
