// Ends operations that have not ended by their deadlines, whether somebody waits for them or not.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include <c10/util/intrusive_ptr.h>

namespace trellis::process_group {

class TorchWork;

class DeadlineWatchdog {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  ~DeadlineWatchdog() { stop(); }

  void add(Moment, c10::intrusive_ptr<TorchWork>);  // the thread is started by the first call
  void remove(Moment, TorchWork*);
  void stop();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<Moment, TorchWork*>, c10::intrusive_ptr<TorchWork>> pending_;
  Moment wakes_ = Moment::max();  // when the thread looks next
  std::thread thread_;
  bool stopping_ = false;
};

}  // namespace trellis::process_group
