// Says on a terminal how far a long measurement is, one line over the other.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace trellis::tools {

class BenchProgress {
 public:
  // Shown on standard error when that is a terminal and `wanted`.
  BenchProgress(std::size_t all, bool wanted);
  ~BenchProgress() { clear(); }
  BenchProgress(const BenchProgress&) = delete;
  BenchProgress& operator=(const BenchProgress&) = delete;

  void next(const std::string& what);             // begins the next of them
  void skip(std::size_t some) { done_ += some; }  // which another process has done
  void clear();                                   // the line, before something else is printed

 private:
  std::size_t all_, done_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace trellis::tools
