#include "launch/launch_on_hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "ccl/config.h"
#include "ccl/errors.h"
#include "ccl/print_to_stderr.h"
#include "launch/remote_shell.h"
#include "net/descriptor.h"
#include "net/sha256.h"

namespace trellis::launch {
namespace {

using ccl::Clock;
using ccl::Deadline;

constexpr std::array passed_on = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
// Launches end each other by themselves; those that are left this long after the first failure are told to end.
constexpr auto farewell = std::chrono::seconds(5);
constexpr int shell_failed = 255;  // ssh's status when it fails itself; the launch may never have run

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : passed_on) sigaddset(&set, s);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool is_passed(std::string_view name, const std::vector<std::string>& more) {
  if (name == "TRELLIS_SECRET" || name == "TRELLIS_HOST") return false;
  for (const char* known : {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV"})
    if (name == known) return true;
  for (const char* prefix : {"TRELLIS_", "NCCL_", "OFI_", "FI_", "NEURON_", "CCOM_", "OMP_"})
    if (name.starts_with(prefix)) return true;
  return std::ranges::find(more, name) != more.end();
}

// The command that the host's shell runs: one line without secrets, as other users can read it.
std::string command_line(const HostsLaunchOptions& hosts, int node) {
  const LaunchOptions& job = hosts.job;
  const std::string host = bare_host(hosts.hosts[static_cast<std::size_t>(node)].host);
  std::string line = fmt::format("cd {} && exec env TRELLIS_HOST={}",
                                 shell_word(std::filesystem::current_path().string()), shell_word(host));
  for (char** e = environ; *e != nullptr; ++e)
    if (const std::string_view entry = *e; is_passed(entry.substr(0, entry.find('=')), hosts.passed))
      line += " " + shell_word(entry);
  line +=
      fmt::format(" {} launch --tether -n {} --nnodes {} --node-rank {} --master-addr {} --master-port {} --grace {}",
                  shell_word(path_of_this_program()), job.ranks, hosts.hosts.size(), node, shell_word(job.address),
                  job.port, static_cast<double>(job.grace.count()) / 1000);
  if (job.raw) line += " --raw";
  if (job.pin != Pin::share) line += job.pin == Pin::core ? " --pin" : " --no-pin";
  line += " --";
  for (const std::string& word : job.program) line += " " + shell_word(word);
  return line;
}

struct Remote {
  std::string host;
  pid_t pid = -1;
  net::Descriptor tether;
  bool running = true;
};

Remote start(const HostsLaunchOptions& hosts, int node) {
  const std::string& host = hosts.hosts[static_cast<std::size_t>(node)].host;
  const bool here = is_this_host(host);
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), fmt::format("a pipe to host {}", host));
  const net::Descriptor input(ends[0]);
  Remote remote{.host = host, .tether = net::Descriptor(ends[1])};
  const pid_t parent = getpid();
  remote.pid = fork();
  if (remote.pid < 0)
    throw std::system_error(errno, std::generic_category(), fmt::format("a process for host {}", host));
  if (remote.pid != 0) return remote;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  dup2(input.number(), 0);
  std::signal(SIGPIPE, SIG_DFL);
  // Keys such as Ctrl-C reach the parent alone, which passes them on. A remote shell may ask for a password, so it
  // stays in the foreground.
  if (here) setpgid(0, 0);
  for (const int s : {SIGINT, SIGQUIT})
    if (!here) std::signal(s, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  become(words_on_host(hosts.shell, host, command_line(hosts, node)), "trellis launch");
}

// The launches that are under way.
class Launches {
 public:
  explicit Launches(const HostsLaunchOptions& hosts) : shell_(hosts.shell), tethered_(hosts.job.secret + "\n") {
    for (std::size_t node = 0; node < hosts.hosts.size(); ++node) {
      remotes_.push_back(start(hosts, static_cast<int>(node)));
      tell(remotes_.back(), tethered_);
    }
  }
  ~Launches() {
    for (Remote& r : remotes_) r.tether = net::Descriptor();
    for (const Remote& r : remotes_)
      if (r.running) waitpid(r.pid, nullptr, 0);
  }
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  int run(const sigset_t& watched) {
    while (collect()) {
      siginfo_t info;
      const timespec beat = {.tv_sec = 0, .tv_nsec = 200'000'000};
      const int signal = end_at_ ? sigtimedwait(&watched, &info, &beat) : sigwaitinfo(&watched, &info);
      if (signal > 0 && signal != SIGCHLD && signal != SIGPIPE) {
        told_ = true;
        for (Remote& r : remotes_) tell(r, fmt::format("{}\n", signal));
      }
      if (end_at_ && Clock::now() >= *end_at_)
        for (Remote& r : remotes_) r.tether = net::Descriptor();
    }
    return status_;
  }

 private:
  // Writes to a launch; one that has ended reads nothing, which is harmless.
  static void tell(const Remote& r, const std::string& text) {
    if (r.tether) [[maybe_unused]]
      const ssize_t wrote = write(r.tether.number(), text.data(), text.size());
  }

  // Notes which launches have ended. True: some are left.
  bool collect() {
    bool left = false;
    for (Remote& r : remotes_) {
      int status = 0;
      if (r.running && waitpid(r.pid, &status, WNOHANG) == r.pid) ended(r, status);
      left = left || r.running;
    }
    return left;
  }

  void ended(Remote& r, int status) {
    r.running = false;
    r.tether = net::Descriptor();
    const int code = exit_status(status);
    if (code == 0 || status_ != 0) return;
    status_ = code;
    // Says so even if the launch has printed why: the remote shell may have failed silently before it started the
    // launch.
    if (!told_)
      ccl::tell("trellis launch: host {}: the launch there ended with status {}{}\n", r.host, code,
                is_this_host(r.host) ? "" : fmt::format(" (remote shell: '{}')", shell_));
    end_at_ = code == shell_failed ? Clock::now() : Clock::now() + farewell;
  }

  const std::string shell_, tethered_;
  std::vector<Remote> remotes_;
  std::optional<Deadline> end_at_;
  int status_ = 0;
  bool told_ = false;  // a signal has come and was passed on
};

// Runs in a process of its own, for as long as the launch does.
[[noreturn]] void pass_on_signals(int input, pid_t launch) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string line;
  for (char c = 0; getppid() == launch;) {
    const ssize_t got = read(input, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      kill(launch, SIGTERM);
      _exit(0);
    }
    if (c != '\n') {
      line += c;
      continue;
    }
    if (const int signal = std::atoi(line.c_str()); std::ranges::find(passed_on, signal) != passed_on.end())
      kill(launch, signal);
    line.clear();
  }
  _exit(0);
}

}  // namespace

std::string path_of_this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

int launch_on_hosts(HostsLaunchOptions hosts) {
  LaunchOptions& job = hosts.job;
  if (job.address.empty()) job.address = bare_host(hosts.hosts.front().host);
  if (job.address == "localhost" && hosts.hosts.size() > 1)
    throw std::invalid_argument("the first host is localhost: expected a name by which the others reach it");
  if (job.secret.empty()) job.secret = ccl::secret_from_environment();
  if (job.secret.empty()) job.secret = net::fresh_secret();
  if (job.port == 0) job.port = usual_port;
  const sigset_t watched = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &watched, &before);
  const int status = Launches(hosts).run(watched);
  // A write to a launch that had ended has left a SIGPIPE pending, which would end this process now.
  sigset_t broken;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  const timespec at_once = {};
  while (sigtimedwait(&broken, nullptr, &at_once) > 0) {
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return status;
}

std::string follow_tether() {
  constexpr std::size_t most = 4096;
  std::string secret;
  for (char c = 0; secret.size() < most;) {
    const ssize_t got = read(0, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') break;
    secret += c;
  }
  const net::Descriptor tether(fcntl(0, F_DUPFD_CLOEXEC, 3)), nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!tether || !nothing || dup2(nothing.number(), 0) < 0)
    throw std::system_error(errno, std::generic_category(), "standard input");
  for (const int s : passed_on) std::signal(s, SIG_DFL);  // inherited: a remote shell may ignore some of these signals
  const pid_t launch = getpid(), watcher = fork();
  if (watcher < 0) throw std::system_error(errno, std::generic_category(), "a process that reads signals");
  if (watcher == 0) pass_on_signals(tether.number(), launch);
  return secret;
}

}  // namespace trellis::launch
