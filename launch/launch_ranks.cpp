#include "launch/launch_ranks.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <exception>
#include <optional>
#include <system_error>

#include "ccl/descriptor_limit.h"
#include "ccl/job_identity.h"
#include "ccl/print_to_stderr.h"
#include "ccl/transports/process_handle.h"
#include "kernels/dispatch/cpu_quota.h"
#include "launch/line_prefixer.h"
#include "launch/node_coordinator.h"
#include "launch/nonblocking_output.h"
#include "launch/rank_placement.h"
#include "launch/remote_shell.h"
#include "launch/start_rank.h"
#include "launch/write_launch_record.h"
#include "net/socket.h"

namespace trellis::launch {
namespace {

using ccl::Clock;
using ccl::Deadline;

constexpr std::array forwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr auto drain_time = std::chrono::seconds(1);            // for what is left in the pipes of ranks that ended
constexpr auto silent_search = std::chrono::seconds(2);         // for other nodes, before a message is printed
constexpr auto farewell = std::chrono::seconds(3);              // for other nodes to hear how the job ended
constexpr auto last_words = std::chrono::seconds(1);            // the same, when the launch was killed
constexpr auto between_looks = std::chrono::milliseconds(200);  // between checks whether the launch is stopped
constexpr auto stopped_enough = std::chrono::seconds(3);        // a launch stopped so long ends a job on several nodes

// The kernel sends this to the supervisor process when launch has died.
int abandoned() { return SIGRTMIN; }

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : forwarded) sigaddset(&set, s);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGPIPE);
  sigaddset(&set, abandoned());
  return set;
}

bool asks_for_the_end(int signal) { return signal != SIGUSR1 && signal != SIGUSR2; }

std::string in_words(int status) {
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  const char* name = sigabbrev_np(WTERMSIG(status));
  return fmt::format("was killed by signal {}{}", WTERMSIG(status),
                     name == nullptr ? "" : fmt::format(" (SIG{})", name));
}

struct Stream {
  net::Descriptor from;
  LinePrefixer lines;
  NonblockingOutput* to;
};

struct Rank {
  pid_t pid = -1;
  int number = 0;
  bool running = true;
  bool told = false;  // was told to end
  int status = 0;     // as returned by waitpid
  std::int64_t ended_ns = 0;
};

// The supervisor process: starts the ranks, forwards their output, ends them.
class Keeper {
 public:
  // `descriptors`: the limit that ranks get.
  Keeper(const LaunchOptions& job, const rlimit& descriptors) : job_(job), descriptors_(descriptors) {
    if (job.nodes > 1) nodes_.emplace(job);
    const sigset_t watched = watched_signals();
    signals_ = net::Descriptor(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) throw std::system_error(errno, std::generic_category(), "signals of ranks");
  }
  ~Keeper() { sweep_processes(); }

  int run() {
    if (nodes_) find_nodes();
    if (status_ == 0 && !told_to_end_) start();
    while (running() > 0) {
      step(kill_at_.value_or(Deadline::max()));
      if (kill_at_ && Clock::now() >= *kill_at_) kill_those_left();
    }
    if (status_ != 0 || told_to_end_) record();
    if (nodes_) leave_nodes();
    sweep_processes();  // processes that ranks left behind may hold pipes open
    for (const Deadline end = Clock::now() + drain_time; !streams_.empty() && Clock::now() < end;) step(end);
    for (Stream& s : streams_) s.to->add(s.lines.finish());
    while (!outlets_[0].idle() || !outlets_[1].idle()) step(Deadline::max());
    for (const NonblockingOutput& o : outlets_)
      if (o.broken() != 0 && o.broken() != EPIPE)
        throw std::system_error(o.broken(), std::generic_category(), "output");
    return status_;
  }

 private:
  void start() {
    const std::vector<RankPlace> places = places_for(host_machine(), job_.ranks, job_.pin, kernels::quota_here());
    for (int local = 0; local < job_.ranks; ++local) {
      StartedRank s = start_rank(job_, local, places[static_cast<std::size_t>(local) % places.size()], descriptors_);
      const int number = job_.node * job_.ranks + local;
      ranks_.push_back({s.pid, number});
      if (s.output) streams_.push_back({std::move(s.output), LinePrefixer(prefix(number, outlets_[0])), &outlets_[0]});
      if (s.errors) streams_.push_back({std::move(s.errors), LinePrefixer(prefix(number, outlets_[1])), &outlets_[1]});
    }
  }

  void find_nodes() {
    const Deadline soon = Clock::now() + silent_search;
    const auto looks = [&] { return !nodes_->all_here() && status_ == 0 && !told_to_end_; };
    while (looks() && Clock::now() < soon) step(soon);
    if (looks()) say(fmt::format("waiting for the launches of {} nodes", job_.nodes));
    while (looks()) step(Deadline::max());
  }

  // Node 0 keeps the store until all nodes are done. After the job's end the wait is short.
  void leave_nodes() {
    if (!nodes_->all_here()) return;
    nodes_->done();
    while (!nodes_->settled() && !nodes_over()) step(Deadline::max());
    const Deadline end = Clock::now() + farewell;
    while (!nodes_->settled() && Clock::now() < end) step(end);
  }
  bool nodes_over() const { return status_ != 0 || told_to_end_; }

  // Ends the ranks here if another node has ended the job.
  void heed_nodes() {
    nodes_->heard();
    const JobEnd end = nodes_->ended();
    if (end.status == 0 || nodes_over()) return;
    status_ = end.status;
    heard_ = end.why;
    say(fmt::format("{}{}", end.why, running() == 0 ? "" : fmt::format("; ending the {} ranks here", running())));
    end_ranks(SIGTERM);
  }

  static std::string prefix(int rank, const NonblockingOutput& to) {
    constexpr int first_colour = 31, colours = 6;  // red to cyan
    return to.coloured() ? fmt::format("\x1b[{}m[{}]\x1b[0m ", first_colour + rank % colours, rank)
                         : fmt::format("[{}] ", rank);
  }

  int running() const {
    int count = 0;
    for (const Rank& r : ranks_) count += r.running ? 1 : 0;
    return count;
  }

  void say(const std::string& text) { outlets_[1].add(fmt::format("trellis launch: {}\n", text)); }

  // Waits for the next event and handles it.
  void step(Deadline deadline) {
    std::vector<pollfd> polled = {{signals_.number(), POLLIN, 0}, outlets_[0].polled(), outlets_[1].polled()};
    polled.push_back({nodes_ ? nodes_->news() : -1, POLLIN, 0});
    const std::size_t first = polled.size();
    for (const Stream& s : streams_) polled.push_back({s.to->full() ? -1 : s.from.number(), POLLIN, 0});
    if (nodes_ && running() > 0) deadline = std::min(deadline, Clock::now() + between_looks);
    if (poll(polled.data(), polled.size(), net::milliseconds_until(deadline)) < 0 && errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "output of ranks");
    for (std::size_t i = 0; i < 2; ++i)
      if (polled[1 + i].revents != 0) {
        outlets_[i].write_some();
        if (outlets_[i].broken() != 0) output_broke(outlets_[i].broken());
      }
    for (std::size_t i = streams_.size(); i-- > 0;)
      if (polled[first + i].revents != 0 && !carry(streams_[i]))
        streams_.erase(streams_.begin() + static_cast<long>(i));
    if (polled[0].revents != 0) heed_signals();
    if (polled[first - 1].revents != 0) heed_nodes();
    if (nodes_ && running() > 0) look_after_launch();
  }

  // Ends the job if the launch process has been stopped for too long: it would pass no signal on, and nobody would see
  // the end of the job there.
  void look_after_launch() {
    const Deadline now = Clock::now();
    if (!ccl::process_stopped(getppid()))
      stopped_since_.reset();
    else if (!stopped_since_)
      stopped_since_ = now;
    if (!stopped_since_ || now - *stopped_since_ < stopped_enough || nodes_over()) return;
    status_ = 1;
    const std::string what = fmt::format("has been stopped for {} s", stopped_enough.count());
    say(fmt::format("the launch (process {}) {}; ending {} ranks", getppid(), what, running()));
    tell_nodes({1, fmt::format("the launch of node {} {}", job_.node, what)});
    end_ranks(SIGTERM);
  }

  // True if there may be more to read.
  static bool carry(Stream& s) {
    std::array<char, 1 << 16> bytes;
    const ssize_t got = read(s.from.number(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) return true;
    s.to->add(got > 0 ? s.lines.take({bytes.data(), static_cast<std::size_t>(got)}) : s.lines.finish());
    return got > 0;
  }

  void heed_signals() {
    signalfd_siginfo info;
    while (read(signals_.number(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD)
        collect();
      else if (signal == abandoned())
        kill_everything();
      else if (signal != SIGPIPE)
        forward(signal);
    }
  }

  void forward(int signal) {
    if (!asks_for_the_end(signal)) {
      for (const Rank& r : ranks_)  // not the ranks' children: one that does not handle the signal would die of it
        if (r.running) kill(r.pid, signal);
      return;
    }
    if (told_to_end_) return kill_those_left();  // the second request: end at once
    told_to_end_ = true;
    told_by_ = sigabbrev_np(signal);
    if (running() == 0 && status_ == 0) status_ = 128 + signal;  // before ranks were started, or after they ended
    say(fmt::format("SIG{}: ending {} ranks", sigabbrev_np(signal), running()));
    tell_nodes(
        {128 + signal, fmt::format("the launch of node {} was told to end by SIG{}", job_.node, sigabbrev_np(signal))});
    end_ranks(signal);
  }

  void collect() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
      for (Rank& r : ranks_)
        if (r.running && r.pid == pid) {
          r.running = false;
          r.status = status;
          r.ended_ns = nanoseconds();
          if (status != 0) failed(r, status);
        }
  }

  void failed(const Rank& r, int status) {
    if (status_ != 0) return;  // the job is already ending
    status_ = exit_status(status);
    if (told_to_end_) return;
    say(fmt::format("rank {} (process {}) {}{}", r.number, r.pid, in_words(status),
                    running() == 0 ? "" : fmt::format("; ending the other {}", running())));
    tell_nodes({status_, fmt::format("rank {} on node {} {}", r.number, job_.node, in_words(status))});
    end_ranks(SIGTERM);
  }

  void tell_nodes(const JobEnd& end) {
    if (nodes_) nodes_->end(end);
  }

  void output_broke(int error) {
    if (status_ == 0) status_ = error == EPIPE ? 128 + SIGPIPE : 1;
    tell_nodes({status_, fmt::format("the launch of node {} can't write its output", job_.node)});
    end_ranks(SIGTERM);
  }

  void end_ranks(int signal) {
    signal_ranks(signal);
    if (!kill_at_) kill_at_ = Clock::now() + job_.grace;
  }

  void signal_ranks(int signal) {
    for (Rank& r : ranks_) {
      if (!r.running) continue;
      r.told = true;
      kill(-r.pid, signal);
    }
  }

  // The record of how ranks ended, for diagnosis.
  void record() try {
    const std::string folder = dump_folder();
    if (folder.empty()) return;
    ccl::LaunchRecord record{.node = job_.node,
                             .nodes = job_.nodes,
                             .job_identity = ccl::job_identity(job_.secret),
                             .began_ns = began_ns_,
                             .written_ns = nanoseconds(),
                             .told = told_by_,
                             .heard = heard_};
    for (const Rank& r : ranks_)
      record.ranks.push_back({.rank = r.number,
                              .process = r.pid,
                              .end = in_words(r.status),
                              .ended_ns = r.ended_ns,
                              .failed = r.status != 0,
                              .told = r.told});
    write_launch_record(launch_record_path(folder, job_.node), record);
  } catch (const std::exception& e) {
    say(fmt::format("the launch's record could not be written: {}", e.what()));
  }

  void kill_those_left() {
    for (const Rank& r : ranks_)
      if (r.running) say(fmt::format("rank {} (process {}) ignored the request to end: killed", r.number, r.pid));
    signal_ranks(SIGKILL);
    kill_at_.reset();
  }

  [[noreturn]] void kill_everything() {
    signal_ranks(SIGKILL);
    sweep_processes();
    tell_nodes({128 + SIGKILL, fmt::format("the launch of node {} was killed", job_.node)});
    if (nodes_) nodes_->done();
    const auto listens = [&] { return nodes_ && nodes_->all_here() && !nodes_->settled(); };
    for (const Deadline end = Clock::now() + last_words; listens() && Clock::now() < end;) usleep(10'000);
    _exit(128 + SIGKILL);
  }

  const LaunchOptions& job_;
  const rlimit descriptors_;
  std::optional<NodeCoordinator> nodes_;  // with several nodes
  net::Descriptor signals_;
  std::array<NonblockingOutput, 2> outlets_ = {NonblockingOutput(1), NonblockingOutput(2)};
  std::vector<Rank> ranks_;
  std::vector<Stream> streams_;
  std::optional<Deadline> kill_at_, stopped_since_;
  bool told_to_end_ = false;
  int status_ = 0;
  std::string told_by_ = {}, heard_ = {};  // the signal that asked for the end; or why another node ended the job
  const std::int64_t began_ns_ = nanoseconds();
};

[[noreturn]] void keep(const LaunchOptions& job, pid_t launcher) {
  setpgid(0, 0);  // a key such as Ctrl-C then reaches launch alone, and each rank once, through it
  prctl(PR_SET_PDEATHSIG, abandoned());
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (getppid() != launcher) _exit(1);
  try {
    rlimit descriptors = {};
    if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0)
      throw std::system_error(errno, std::generic_category(), "the limit of descriptors");
    ccl::raise_descriptor_limit();  // two pipes for each rank
    const int status = Keeper(job, descriptors).run();
    if (job.nodes > 1) kill(launcher, SIGCONT);
    _exit(status);
  } catch (const std::exception& error) {
    ccl::tell("trellis: {}\n", error.what());
    _exit(1);
  }
}

}  // namespace

LaunchEnd launch(const LaunchOptions& job) {
  const sigset_t watched = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &watched, &before);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t launcher = getpid(), keeper = fork();
  if (keeper < 0) throw std::system_error(errno, std::generic_category(), "a process to keep the ranks");
  if (keeper == 0) keep(job, launcher);
  int status = 0;
  bool told = false;
  while (waitpid(keeper, &status, WNOHANG) == 0) {
    siginfo_t info;
    const int signal = sigwaitinfo(&watched, &info);
    if (signal <= 0 || signal == SIGCHLD || signal == SIGPIPE) continue;
    told = told || asks_for_the_end(signal);
    kill(keeper, signal);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (!WIFSIGNALED(status)) return {WEXITSTATUS(status), told};
  sweep_processes();
  throw std::runtime_error(fmt::format("the process that kept the ranks {}", in_words(status)));
}

}  // namespace trellis::launch
