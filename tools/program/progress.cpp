#include "tools/program/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <string_view>

#include "ccl/print_to_stderr.h"
#include "ccl/thread_without_signals.h"

namespace trellis::tools {
namespace {

constexpr std::chrono::milliseconds on_a_terminal{200};  // between two updates of the line
constexpr std::chrono::seconds in_a_log{10};
constexpr double foreseeable = 0.01, patience = 1;  // fraction done and seconds passed before the time left is shown

bool wanted_in_a_log() {
  const char* const word = std::getenv("TRELLIS_PROGRESS");
  return word == nullptr || std::string_view(word) != "0";
}

}  // namespace

std::string duration_words(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

Progress::Progress(std::size_t all, bool wanted)
    : terminal_(isatty(STDERR_FILENO) == 1), shown_(wanted && (terminal_ || wanted_in_a_log())), all_(all) {}

Progress::~Progress() {
  if (process_ == getpid()) {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    ticks_.join();
    clear();
  } else if (ticks_.joinable()) {
    ticks_.detach();  // the thread is the parent's, and does not run here
  }
}

// The thread gets no signals: code that blocks signals and polls for them must get them itself.
void Progress::begin() {
  if (!shown_ || process_ == getpid()) return;
  if (process_ != 0) {  // forked: the parent's thread may have held the mutex
    new (&mutex_) std::mutex;
    new (&changed_) std::condition_variable;
    if (ticks_.joinable()) ticks_.detach();
  }
  process_ = getpid();
  ticks_ = ccl::thread_without_signals([this] { run(); });
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return over_; })) {
    const auto since = Clock::now() - last_;
    if (terminal_ ? on_screen_ && since >= std::chrono::seconds(1) : since >= in_a_log) show();
  }
}

std::string Progress::line() const {
  const double passed = std::chrono::duration<double>(Clock::now() - began_).count();
  std::string text = fmt::format("{}, {}", what_, duration_words(passed));
  if (part_ >= foreseeable && part_ < 1 && passed >= patience)
    text += fmt::format(", about {} left", duration_words(passed / part_ * (1 - part_)));
  return text;
}

void Progress::show() {
  last_ = Clock::now();
  if (what_.empty()) return;
  on_screen_ = terminal_;
  if (terminal_)
    ccl::tell("\r\033[K{}", line());
  else
    ccl::tell("trellis: {}\n", line());
}

void Progress::restart() {
  const std::lock_guard lock(mutex_);
  began_ = last_ = Clock::now();
  what_.clear(), part_ = -1;
}

void Progress::next(const std::string& what) {
  begin();
  const std::lock_guard lock(mutex_);
  ++done_;
  what_ = all_ > 0 ? fmt::format("{}/{} {}", done_, all_, what) : fmt::format("{} {}", done_, what);
  const std::size_t own = done_ - 1 - skipped_;  // the parts that ended before this one, except skipped ones
  if (all_ > skipped_) part_ = static_cast<double>(own) / static_cast<double>(all_ - skipped_);
  if (shown_ && terminal_) show();
}

void Progress::skip(std::size_t some) {
  const std::lock_guard lock(mutex_);
  done_ += some, skipped_ += some;
}

void Progress::say(const std::string& what, double part) {
  begin();
  const std::lock_guard lock(mutex_);
  what_ = what, part_ = part;
  if (shown_ && terminal_ && Clock::now() - last_ >= on_a_terminal) show();
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (on_screen_) ccl::tell("\r\033[K");
  on_screen_ = false;
  what_.clear();
}

}  // namespace trellis::tools
