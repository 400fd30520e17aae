#include "kernels/dispatch/thread_team.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/dispatch/cpu.h"
#include "text/number_parsing.h"
#include "text/words.h"

namespace trellis::kernels {
namespace {

// How often a waiting thread polls before it sleeps. long_spins takes some 3 ms, as in GCC's OpenMP if each thread has
// a core; short_spins takes next to no time.
constexpr long long long_spins = 300'000, short_spins = 100;

std::atomic<TeamSpinTime> wanted{TeamSpinTime::long_time};
std::atomic<int> alive{0};  // threads of all teams, including those that call
std::atomic<int> forks{0};  // counted in each forked child, in which a team made before has lost its threads

const TeamSpinCounts& spins_here() {
  static const TeamSpinCounts here =
      team_spins_of(std::getenv("OMP_WAIT_POLICY"), std::getenv("GOMP_SPINCOUNT"));  // NOLINT(concurrency-mt-unsafe)
  return here;
}

void rest() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

// A number whose change threads wait for. They sleep by the futex system call: std::atomic's wait first yields the core
// a few times, and each time a busy machine gives the core to others for a time slice.
class Awaited {
 public:
  std::uint32_t now() const { return value_.load(std::memory_order_acquire); }
  void set(std::uint32_t value) { value_.store(value, std::memory_order_relaxed); }

  // Returns the value before the change.
  std::uint32_t add(std::uint32_t change) { return value_.fetch_add(change, std::memory_order_seq_cst); }
  void wake() {
    if (sleepers_.load(std::memory_order_seq_cst) > 0) futex(FUTEX_WAKE_PRIVATE, INT_MAX);
  }

  // Waits while the value is `is`. Only one thread may ever call this: patience_ is not atomic.
  void wait_while(std::uint32_t is) {
    const TeamSpinCounts& spins = spins_here();
    const long long most = team_wait() == TeamSpinTime::long_time ? spins.with_cores : spins.without;
    const long long tries = spins.adapts ? std::min(most, patience_) : most;
    for (long long i = 0; i < tries; ++i) {
      if (now() != is) {
        patience_ = std::min(patience_ * 2, long_spins);
        return;
      }
      rest();
    }
    patience_ = std::max(patience_ / 8, short_spins);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (value_.load(std::memory_order_seq_cst) == is) futex(FUTEX_WAIT_PRIVATE, is);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  void futex(int operation, std::uint32_t argument) {
    static_assert(sizeof value_ == sizeof(std::uint32_t));
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&value_), operation, argument, nullptr, nullptr, 0);
  }

  std::atomic<std::uint32_t> value_{0};
  std::atomic<int> sleepers_{0};

  // How often to look before sleeping. A wait in vain shortens the next ones: if a team's thread has lost its core to
  // another program, spinning on the other cores does not bring it back. Waits that end in time lengthen them again.
  long long patience_ = long_spins;
};

thread_local bool inside = false;  // whether this thread is in a team's work

// The threads that work for one calling thread.
class Team {
 public:
  Team() { alive.fetch_add(1, std::memory_order_relaxed); }
  ~Team() {
    for (const auto& each : others_) {
      each->ends = true;
      each->go();
    }
    for (const auto& each : others_) each->thread.join();
    alive.fetch_sub(1 + static_cast<int>(others_.size()), std::memory_order_relaxed);
  }

  void run(int threads, void (*work)(void*, int, int), void* context) {
    grow(threads - 1);
    work_ = work, context_ = context, threads_ = threads;
    left_.set(static_cast<std::uint32_t>(threads - 1));
    for (int i = 0; i < threads - 1; ++i) others_[static_cast<std::size_t>(i)]->go();
    inside = true;
    work(context, 0, threads);
    inside = false;
    while (const std::uint32_t left = left_.now()) left_.wait_while(left);
  }

  const int of_fork = forks.load(std::memory_order_relaxed);

 private:
  struct alignas(64) Other {
    Awaited turn;
    bool ends = false;
    std::thread thread = {};

    void go() {
      turn.add(1);
      turn.wake();
    }
  };

  void grow(int others) {
    while (static_cast<int>(others_.size()) < others) {
      auto& each = *others_.emplace_back(std::make_unique<Other>());
      const int number = static_cast<int>(others_.size());
      try {
        each.thread = std::thread([this, &each, number] { serve(each, number); });
      } catch (...) {
        others_.pop_back();
        throw;
      }
      alive.fetch_add(1, std::memory_order_relaxed);
    }
  }

  void serve(Other& self, int number) {
    inside = true;
    for (std::uint32_t turn = 0;; ++turn) {
      self.turn.wait_while(turn);
      if (self.ends) return;
      work_(context_, number, threads_);
      if (left_.add(-1U) == 1) left_.wake();
    }
  }

  std::vector<std::unique_ptr<Other>> others_;
  void (*work_)(void*, int, int) = nullptr;
  void* context_ = nullptr;
  int threads_ = 0;
  alignas(64) Awaited left_;
};

// A thread's team. A forked child never destroys its copy: the threads are the parent's and cannot be joined.
struct OwnTeam {
  std::unique_ptr<Team> team = {};

  ~OwnTeam() { leave_to_parent(); }
  void leave_to_parent() {
    if (team && team->of_fork != forks.load(std::memory_order_relaxed)) static_cast<void>(team.release());
  }
};

constexpr long long forever = 30'000'000'000;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_word(std::string_view said, std::string_view word) { return std::ranges::equal(said, word, {}, lower); }

// "1000", "10k", "infinite". None: it is no such number.
std::optional<long long> spin_count(std::string_view said) {
  if (is_word(said, "infinite") || is_word(said, "infinity")) return forever;
  constexpr std::string_view thousands = "kmgt";
  long long unit = 1;
  if (!said.empty())
    if (const auto at = thousands.find(lower(said.back())); at != thousands.npos) {
      for (std::size_t i = 0; i <= at; ++i) unit *= 1'000;
      said = text::trimmed(said.substr(0, said.size() - 1));
    }
  const auto n = text::number<long long>(said, 0);
  return n ? std::optional(*n > forever / unit ? forever : *n * unit) : std::nullopt;
}

Team& own_team() {
  thread_local OwnTeam own;
  static const int noted = pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    alive.store(0, std::memory_order_relaxed);
  });
  static_cast<void>(noted);
  own.leave_to_parent();
  if (!own.team) own.team = std::make_unique<Team>();
  return *own.team;
}

}  // namespace

// Follows the rules of GCC's OpenMP, where the active policy spins for minutes. The count applies if each thread has a
// core. If not, threads spin no longer than the policy says: they would keep cores from those that they wait for.
TeamSpinCounts team_spins_of(const char* policy, const char* count) {
  const std::string_view said = policy == nullptr ? "" : text::trimmed(policy);
  TeamSpinCounts spins{long_spins, short_spins};
  if (is_word(said, "passive")) spins = {0, 0, false};
  if (is_word(said, "active")) spins = {forever, 1'000, false};
  if (const auto n = spin_count(count == nullptr ? "" : text::trimmed(count)))
    spins = {*n, std::min(spins.without, *n), false};
  return spins;
}

void set_team_wait(TeamSpinTime wait) { wanted.store(wait, std::memory_order_relaxed); }

TeamSpinTime team_wait() {
  if (alive.load(std::memory_order_relaxed) > cpu().cores) return TeamSpinTime::short_time;
  return wanted.load(std::memory_order_relaxed);
}

void run_team(int threads, void (*work)(void*, int, int), void* context) {
  if (threads > 1 && !inside) return own_team().run(threads, work, context);
  for (int thread = 0; thread < threads; ++thread) work(context, thread, threads);
}

}  // namespace trellis::kernels
