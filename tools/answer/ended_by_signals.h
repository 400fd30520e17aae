// Lets SIGINT and SIGTERM end the process although an Interrupts of this thread blocks them: for work that has no
// results yet.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace trellis::tools {

// While it lives, SIGINT and SIGTERM end the process.
class EndedBySignals {
 public:
  EndedBySignals();
  ~EndedBySignals();
  EndedBySignals(const EndedBySignals&) = delete;
  EndedBySignals& operator=(const EndedBySignals&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread takes_them_;
};

}  // namespace trellis::tools
