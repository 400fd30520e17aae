#include "launch/run_on_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "ccl/config.h"
#include "ccl/descriptor_limit.h"
#include "ccl/rendezvous/environment.h"
#include "ccl/rendezvous/unique_id.h"
#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/sysfs_topology.h"
#include "launch/host_machine.h"
#include "net/descriptor.h"
#include "text/refuse.h"

namespace trellis::launch {
namespace {

using ccl::Clock;
using Work = std::function<int(const RankContext&)>;

constexpr std::size_t most_said = 2048;

std::system_error failure(const char* what) { return {errno, std::generic_category(), what}; }

// An error that follows from a failure elsewhere: less useful than the cause.
bool is_consequence(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const ccl::PeerLost&) {
    return true;
  } catch (const ccl::Aborted&) {
    return true;
  } catch (const ccl::TimedOut&) {
    return true;
  } catch (...) {
    return false;
  }
}

void stay_on(int thread) {
  if (thread >= 0) kernels::stay_on({&thread, 1});  // best effort: without it, results only vary more
}

int run_threads(std::vector<RankContext> contexts, const Work& work) {
  const auto store = ccl::memory_store();
  std::mutex mutex;
  std::exception_ptr cause;
  int status = 0;
  const auto member = [&](RankContext& c) {
    stay_on(c.thread);
    c.store = store;
    c.transport = "loopback";
    try {
      const int mine = work(c);
      if (c.rank == 0) status = mine;
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!cause || (is_consequence(cause) && !is_consequence(std::current_exception())))
        cause = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t r = 1; r < contexts.size(); ++r) threads.emplace_back(member, std::ref(contexts[r]));
  member(contexts[0]);
  for (std::thread& t : threads) t.join();
  if (cause) std::rethrow_exception(cause);
  return status;
}

// In memory that the processes of a job share. Rank 0 puts the id of its store here, and all connect to that store.
struct Meeting {
  std::atomic<bool> made = false;
  ccl::UniqueId id;
};

class SharedMeeting {
 public:
  SharedMeeting() : memory_(mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw failure("memory that ranks share");
    new (memory_) Meeting();
  }
  ~SharedMeeting() { munmap(memory_, sizeof(Meeting)); }
  SharedMeeting(const SharedMeeting&) = delete;
  SharedMeeting& operator=(const SharedMeeting&) = delete;
  Meeting* operator->() const { return static_cast<Meeting*>(memory_); }

 private:
  void* memory_;
};

std::shared_ptr<ccl::Store> meet(Meeting& meeting, int rank, ccl::Deadline deadline) {
  if (rank == 0) {
    meeting.id = ccl::make_unique_id();
    meeting.made = true;
  }
  while (!meeting.made) {
    if (Clock::now() > deadline) throw ccl::TimedOut("rank 0 did not begin in time");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return ccl::store_for(meeting.id, deadline);
}

// Message of a failing rank's process: one letter for the kind, then text.
constexpr char mistake = 'm', consequence = 'c', trouble = 't';
constexpr int failed = 2;  // exit status of such a process

std::string said_of(const std::exception& e) {
  const char kind = dynamic_cast<const std::invalid_argument*>(&e) != nullptr ? mistake
                    : is_consequence(std::current_exception())                ? consequence
                                                                              : trouble;
  return (kind + std::string(e.what())).substr(0, most_said);
}

// The main function of a rank's process.
[[noreturn]] void live(RankContext c, const Work& work, Meeting& meeting, const net::Descriptor& errors,
                       std::chrono::milliseconds timeout) {
  int status = 0;
  try {
    stay_on(c.thread);
    c.store = meet(meeting, c.rank, Clock::now() + timeout);
    status = work(c);
  } catch (const std::exception& e) {
    const std::string said = said_of(e);
    status = write(errors.number(), said.data(), said.size()) < 0 ? failed + 1 : failed;
  }
  _exit(status);
}

struct Child {
  int rank = 0;
  pid_t pid = -1;
  net::Descriptor tells;  // pipe for the failure message; at its end when the process has ended
};

Child start(const RankContext& c, const Work& work, Meeting& meeting, std::chrono::milliseconds timeout) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw failure("a pipe for a rank");
  net::Descriptor tells(ends[0]), errors(ends[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw failure("a process for a rank");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(failed);  // the parent died before the child could watch it
    live(c, work, meeting, errors, timeout);
  }
  return {c.rank, pid, std::move(tells)};
}

// The processes of all ranks. The destructor ends those that are left.
class Children {
 public:
  explicit Children(std::function<bool()> interrupted) : interrupted_(std::move(interrupted)) {}
  ~Children() {
    for (const Child& c : all_) kill(c.pid, SIGKILL);
    for (const Child& c : all_) waitpid(c.pid, nullptr, 0);
  }
  void add(Child c) { all_.push_back(std::move(c)); }

  // Waits until all have ended, or until the grace period after the first failure, or after rank 0's end where they
  // were interrupted. Returns rank 0's status.
  int wait() {
    constexpr std::chrono::seconds grace{3};
    constexpr int look_ms = 100;  // between two looks whether the user interrupts
    int status = 0;
    ccl::Deadline deadline = ccl::Deadline::max();
    while (!all_.empty() && Clock::now() < deadline) {
      std::vector<pollfd> ends;
      for (const Child& c : all_) ends.push_back({c.tells.number(), POLLIN, 0});
      poll(ends.data(), ends.size(), deadline == ccl::Deadline::max() && !interrupted_ ? -1 : look_ms);
      if (!told_ && interrupted_ && interrupted_()) {
        told_ = true;
        for (const Child& c : all_) kill(c.pid, SIGINT);
      }
      for (std::size_t i = ends.size(); i-- > 0;)
        if (ends[i].revents != 0) reap(i, status);
      if (reader_left_) return 128 + SIGPIPE;  // as a shell says it of a program whose reader has closed the pipe
      const bool over = !why_.empty() || (told_ && first_ended_);
      if (over && deadline == ccl::Deadline::max()) deadline = Clock::now() + grace;
    }
    if (!why_.empty() && kind_ == mistake) throw std::invalid_argument(why_);
    if (!why_.empty()) throw std::runtime_error(why_);
    return status;
  }

 private:
  void reap(std::size_t i, int& status) {
    const Child c = std::move(all_[i]);
    all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
    std::string said(most_said, '\0');
    const ssize_t size = read(c.tells.number(), said.data(), said.size());
    said.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    int ended = 0;
    while (waitpid(c.pid, &ended, 0) < 0 && errno == EINTR) {
    }
    first_ended_ = first_ended_ || c.rank == 0;
    if (c.rank == 0 && WIFSIGNALED(ended) && WTERMSIG(ended) == SIGPIPE && kind_ == consequence) {
      reader_left_ = true;
      return;
    }
    const bool asked_to_end = WIFSIGNALED(ended) && (WTERMSIG(ended) == SIGINT || WTERMSIG(ended) == SIGTERM);
    if (asked_to_end && interrupted_ && interrupted_())
      return note(trouble, fmt::format("interrupted before rank {} had begun", c.rank));
    if (WIFSIGNALED(ended))
      return note(trouble, fmt::format("rank {} was killed by signal {}", c.rank, WTERMSIG(ended)));
    if (said.size() > 1)
      note(said.front(), said.front() == mistake || c.rank == 0 ? said.substr(1)
                                                                : fmt::format("rank {}: {}", c.rank, said.substr(1)));
    else if (WEXITSTATUS(ended) >= failed)
      note(trouble, fmt::format("rank {} ended with status {}", c.rank, WEXITSTATUS(ended)));
    if (c.rank == 0) status = WEXITSTATUS(ended);
  }
  // Keeps the first cause; keeps a consequence only while there is no cause.
  void note(char kind, const std::string& why) {
    if (!why_.empty() && (kind_ != consequence || kind == consequence)) return;
    kind_ = kind;
    why_ = why;
  }

  const std::function<bool()> interrupted_;
  std::vector<Child> all_;
  std::string why_;
  char kind_ = consequence;
  bool told_ = false, first_ended_ = false;  // that the user interrupts; rank 0
  bool reader_left_ = false;                 // rank 0, which prints, has ended at a write to a closed pipe
};

int run_processes(const std::vector<RankContext>& contexts, const RankRunOptions& wish, const Work& work) {
  const SharedMeeting meeting;
  Children children(wish.interrupted);
  for (const RankContext& c : contexts) children.add(start(c, work, *meeting.operator->(), wish.timeout));
  return children.wait();
}

int run_launched(const ccl::LaunchedProcess& launched, const RankRunOptions& wish, const Work& work) {
  if (wish.ranks != 0 && wish.ranks != launched.ranks)
    text::refuse("{} ranks are asked for, and {} started {}", wish.ranks, launched.by, launched.ranks);
  if (wish.threads) text::refuse("ranks were started by {}: they can't be threads too", launched.by);
  RankContext c{.rank = launched.rank, .ranks = launched.ranks, .by = launched.by};
  c.store = ccl::store_from_environment(launched, Clock::now() + wish.timeout);
  return work(c);
}

}  // namespace

int usual_ranks(int cores, double quota) {
  return std::clamp(kernels::within_quota(cores, quota), 2, most_ranks_started);
}

int run_on_ranks(const RankRunOptions& wish, const Work& work) {
  ccl::raise_descriptor_limit();  // every rank holds descriptors of every other, for each communicator
  const ccl::LaunchedProcess launched = ccl::launched_from_environment();
  if (!launched.by.empty()) return run_launched(launched, wish, work);
  const TopoMachine host = host_machine();
  const double quota = kernels::quota_here();
  const auto cores = static_cast<int>(usable_cores(host.whole).size());
  const int ranks = wish.ranks == 0 ? usual_ranks(cores, quota) : wish.ranks;
  if (ranks < 1 || ranks > most_ranks_started) text::refuse("{} ranks: expected 1 to {}", ranks, most_ranks_started);
  std::vector<std::vector<int>> threads;
  if (wish.pin && host.here && !(quota < cores)) threads = rank_threads(host, ranks, CoreAllocationPolicy::one);
  std::vector<RankContext> contexts(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    RankContext& c = contexts[static_cast<std::size_t>(r)];
    c.rank = r;
    c.ranks = ranks;
    if (!threads.empty()) c.thread = threads[static_cast<std::size_t>(r)].front();
  }
  return wish.threads ? run_threads(std::move(contexts), work) : run_processes(contexts, wish, work);
}

}  // namespace trellis::launch
