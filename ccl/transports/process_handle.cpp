#include "ccl/transports/process_handle.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

#include "device/fork_safe_singleton.h"
#include "net/socket.h"

namespace trellis::ccl {
namespace {

class Processes {
 public:
  // Keeps a handle only while its process runs: afterwards, the same pid may belong to another process.
  std::shared_ptr<ProcessHandle> of(pid_t pid) {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
    std::weak_ptr<ProcessHandle>& known = known_[pid];
    std::shared_ptr<ProcessHandle> process = known.lock();
    if (!process || !process->runs()) known = process = std::make_shared<ProcessHandle>(pid);
    return process;
  }

 private:
  std::mutex mutex_;
  std::map<pid_t, std::weak_ptr<ProcessHandle>> known_;
};

// The process's line in /proc from its state on. The line is: "4711 (its name, which may hold anything) T ..."
std::string status_after_name(std::int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const std::size_t name_ends = line.rfind(')');
  return name_ends == std::string::npos || name_ends + 2 >= line.size() ? "" : line.substr(name_ends + 2);
}

}  // namespace

std::shared_ptr<ProcessHandle> ProcessHandle::of(pid_t pid) {
  return device::of_this_process([] { return new Processes; }).of(pid);
}

ProcessHandle::ProcessHandle(pid_t pid)
    : pid_(pid),
      descriptor_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))),
      gone_(descriptor_ < 0 && errno == ESRCH) {}

ProcessHandle::~ProcessHandle() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool ProcessHandle::ends_within(std::chrono::milliseconds time) const {
  if (gone_) return true;
  if (descriptor_ < 0) return kill(pid_, 0) != 0 && errno == ESRCH;
  const net::Deadline until = net::Clock::now() + time;
  pollfd ended = {.fd = descriptor_, .events = POLLIN, .revents = 0};
  int found = 0;
  do {
    found = poll(&ended, 1, time.count() == 0 ? 0 : net::milliseconds_until(until));
  } while (found < 0 && errno == EINTR);
  return found > 0;
}

bool main_thread_ends(pid_t pid) {
  constexpr unsigned exiting = 0x4;  // PF_EXITING of the kernel's flags
  std::istringstream fields(status_after_name(pid));
  char state = 0;
  std::int64_t parent = 0, group = 0, session = 0, terminal = 0, foreground = 0;
  unsigned flags = 0;
  fields >> state >> parent >> group >> session >> terminal >> foreground >> flags;
  return fields && (flags & exiting) != 0;
}

bool process_stopped(std::int64_t process) {
  const std::string status = status_after_name(process);
  return status.starts_with('T') || status.starts_with('t');
}

}  // namespace trellis::ccl
