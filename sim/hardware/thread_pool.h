// A pool of threads that run the same work repeatedly, without starting new threads each time.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace trellis::sim {

class ThreadPool {
 public:
  explicit ThreadPool(int count);  // the caller's thread is one of them
  ~ThreadPool();

  // Runs work(0) to work(count - 1) in parallel and returns when all have ended. Throws what one of them threw.
  void run(const std::function<void(int worker)>& work);

 private:
  void serve(int worker);
  void attempt(int worker);

  const std::function<void(int)>* work_ = nullptr;  // null: the threads are to exit
  std::atomic<std::uint32_t> round_ = 0;
  std::atomic<std::uint32_t> busy_ = 0;  // threads that are still working
  std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<std::jthread> threads_;
};

int processors();  // that this process may keep busy; at least 1

}  // namespace trellis::sim
