// Simulated time: each stream has a clock, and each device has one for all threads that work for no stream. What a
// thread does moves the clock of the stream that it works for.
#pragma once

#include <atomic>
#include <memory>

#include "device/streams/thread_stream.h"

namespace trellis::device {

class SimulatedClock {
 public:
  Time now() const { return now_.load(std::memory_order_relaxed); }
  void add(Time t) { now_.fetch_add(t, std::memory_order_relaxed); }
  void reach(Time t) {
    for (Time was = now(); was < t && !now_.compare_exchange_weak(was, t, std::memory_order_relaxed);) {
    }
  }

 private:
  std::atomic<Time> now_ = 0;
};

// The clocks of one device.
class SimulatedClocks : public ThreadClock {
 public:
  Time now() const override { return current().now(); }
  void wait_until(Time t) override { current().reach(t); }
  void charge(Time t);  // adds the time to the clock, unless take_over(true) was called in this thread

  // From take_over(true) to take_over(false), this thread's copies and sums take no time: that of a whole collective is
  // charged instead. Calls can be nested.
  static void take_over(bool);

  // Makes the thread work for a stream, for the lifetime of this object.
  class Working {
   public:
    explicit Working(SimulatedClock&);
    ~Working();
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    SimulatedClock* before_;
  };

  SimulatedClock& current() const;

 private:
  mutable SimulatedClock callers_;  // of all threads that work for no stream
};

// A stream of the host with a clock.
class SimulatedStream : public Stream {
 public:
  explicit SimulatedStream(std::shared_ptr<SimulatedClocks>);
  void submit(std::function<void()> work) override;
  bool idle() const override { return thread_.idle(); }
  void synchronize() override;
  bool failed() const override { return thread_.failed(); }
  Time now() const override { return clock_->now(); }

 private:
  const std::shared_ptr<SimulatedClocks> clocks_;
  const std::shared_ptr<SimulatedClock> clock_ = std::make_shared<SimulatedClock>();
  ThreadStream thread_;
};

}  // namespace trellis::device
