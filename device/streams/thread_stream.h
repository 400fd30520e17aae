// Streams that are threads, and their events. The device defines the time of a thread's work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "device/fork_mark.h"
#include "device/stream.h"

namespace trellis::device {

// A forked process has no such thread: there, calls throw Forked, and the destructor does nothing.
class ThreadStream : public Stream {
 public:
  ThreadStream() : queue_(new Queue) {}
  void submit(std::function<void()> work) override;
  bool idle() const override;
  void synchronize() override;
  bool failed() const override;

 private:
  class Queue {
   public:
    Queue() : thread_([this] { serve(); }) {}
    ~Queue();
    void add(std::function<void()> work);
    bool empty() const;
    bool failed() const;
    void await();

   private:
    void serve();

    mutable std::mutex mutex_;
    std::condition_variable changed_, drained_;
    std::deque<std::function<void()>> works_;  // that the thread has not taken
    std::exception_ptr thrown_;                // until await() throws it; work is dropped meanwhile
    bool closing_ = false, asleep_ = false;
    // The sum over all pieces of work: 2 until the piece is done, then 1 until it is destroyed; if it fails or is
    // dropped, 2 until it is destroyed.
    std::atomic<std::size_t> unfinished_ = 0;
    int waiting_ = 0;     // threads in await()
    std::thread thread_;  // last: it uses all members above
  };
  Queue& queue() const {
    queue_.get_deleter().mark.expect_same_process("stream");
    return *queue_;
  }

  const MakersOwn<Queue> queue_;
};

// The time of the work that the calling thread does.
class ThreadClock {
 public:
  virtual ~ThreadClock() = default;
  virtual Time now() const { return wall_time(); }
  virtual void wait_until(Time) {}  // the work goes on no earlier than this
};

class ThreadEvent : public Event {
 public:
  explicit ThreadEvent(std::shared_ptr<ThreadClock>);
  void record(Stream*) override;
  bool ready() const override;
  void synchronize() override;
  void wait(Stream*) override;
  Time time() const override;

 private:
  class Point;
  struct Reached;
  std::shared_ptr<Point> last() const;

  const std::shared_ptr<ThreadClock> clocks_;
  mutable std::mutex mutex_;
  std::shared_ptr<Point> last_;
};

}  // namespace trellis::device
