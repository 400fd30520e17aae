// Shows that long work goes on: on a terminal in one line that is overwritten, elsewhere with a line every ten seconds;
// with the time that is left where it can be foreseen.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace trellis::tools {

// Thread-safe. Prints to standard error when `wanted`; with TRELLIS_PROGRESS=0 only if that is a terminal. Elsewhere it
// prints nothing of work that takes less than ten seconds. A child that was forked goes on with its own copy.
class Progress {
 public:
  explicit Progress(std::size_t all = 0, bool wanted = true);  // number of parts; 0: not known
  ~Progress();

  void restart();                                       // restarts the clock for other work
  void next(const std::string& what);                   // starts the next part
  void skip(std::size_t some);                          // parts that need no time, as they were done before
  void say(const std::string& what, double part = -1);  // what goes on, and the fraction that is done; below 0: unknown
  void clear();                                         // erases the line, before something else is printed

 private:
  using Clock = std::chrono::steady_clock;

  void begin();  // starts the thread that updates the line between calls, once a process
  void show();   // with the mutex
  void run();
  std::string line() const;

  const bool terminal_, shown_;
  std::size_t all_, done_ = 0, skipped_ = 0;
  std::string what_;
  double part_ = -1;
  bool on_screen_ = false, over_ = false;
  Clock::time_point began_ = Clock::now(), last_ = began_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread ticks_;
  int process_ = 0;  // the process that started ticks_
};

std::string duration_words(double seconds);  // "35 s", "12 min", "3.5 h"

}  // namespace trellis::tools
