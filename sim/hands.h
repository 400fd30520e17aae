// Work that several threads do at once and again, without being begun anew each time.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace trellis::sim {

class Hands {
 public:
  explicit Hands(int count);  // the caller's thread is the first of them
  ~Hands();
  Hands(const Hands&) = delete;
  Hands& operator=(const Hands&) = delete;

  // Does work(0) to work(count - 1) and returns when all have ended; throws what one of them threw.
  void run(const std::function<void(int hand)>& work);

 private:
  void serve(int hand);
  void attempt(int hand);

  const std::function<void(int)>* work_ = nullptr;  // null: an end is wanted
  std::atomic<std::uint32_t> round_ = 0;
  std::atomic<std::uint32_t> busy_ = 0;  // threads
  std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<std::jthread> threads_;
};

int processors();  // that there are for this process, at least one

}  // namespace trellis::sim
