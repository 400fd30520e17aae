// Shows the progress of a long measurement on a terminal, in one line that is overwritten.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace trellis::tools {

class BenchProgress {
 public:
  // Shown on standard error, when that is a terminal and `wanted`.
  BenchProgress(std::size_t all, bool wanted);
  ~BenchProgress() { clear(); }
  BenchProgress(const BenchProgress&) = delete;
  BenchProgress& operator=(const BenchProgress&) = delete;

  void next(const std::string& what);             // starts the next part
  void skip(std::size_t some) { done_ += some; }  // parts that another process has done
  void clear();                                   // erases the progress line, before something else is printed

 private:
  std::size_t all_, done_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace trellis::tools
