#include "device/streams/thread_stream.h"

#include <utility>

namespace trellis::device {

void ThreadStream::submit(std::function<void()> work) { queue().add(std::move(work)); }
bool ThreadStream::idle() const { return queue().empty(); }
void ThreadStream::synchronize() { queue().await(); }
bool ThreadStream::failed() const { return queue().failed(); }

ThreadStream::Queue::~Queue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ThreadStream::Queue::add(std::function<void()> work) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    unfinished_.fetch_add(2, std::memory_order_relaxed);
    wake = std::exchange(asleep_, false);
  }
  if (wake) changed_.notify_one();
}

bool ThreadStream::Queue::empty() const { return unfinished_.load(std::memory_order_acquire) <= 1; }

bool ThreadStream::Queue::failed() const {
  const std::lock_guard lock(mutex_);
  return thrown_ != nullptr;
}

void ThreadStream::Queue::await() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  drained_.wait(lock, [&] { return unfinished_.load(std::memory_order_acquire) == 0; });
  --waiting_;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

// Takes all waiting work at once. Destroys each piece without the lock, as destructors may call the stream. While the
// last piece is destroyed after it was done, the stream is idle already: its destructors may tell others of its end,
// who then expect an idle stream. But await() waits for the destruction.
void ThreadStream::Queue::serve() {
  std::deque<std::function<void()>> taken;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!closing_ && works_.empty()) {
      asleep_ = true;
      changed_.wait(lock);
    }
    asleep_ = false;
    if (works_.empty()) return;
    std::swap(taken, works_);
    bool is_dropped = thrown_ != nullptr;
    lock.unlock();
    for (std::function<void()>& work : taken) {
      std::size_t left = 2;
      try {
        if (!is_dropped) {
          work();
          unfinished_.fetch_sub(1, std::memory_order_release);
          left = 1;
        }
      } catch (...) {
        const std::lock_guard failing(mutex_);
        thrown_ = std::current_exception();
        is_dropped = true;
      }
      work = nullptr;
      unfinished_.fetch_sub(left, std::memory_order_release);
    }
    taken.clear();
    lock.lock();
    if (waiting_ != 0 && unfinished_.load(std::memory_order_relaxed) == 0) drained_.notify_all();
  }
}

class ThreadEvent::Point {
 public:
  void note(Time time) {
    const std::lock_guard lock(mutex_);
    time_ = time;
  }
  void reach() {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    changed_.notify_all();
  }
  bool is_reached() const {
    const std::lock_guard lock(mutex_);
    return reached_;
  }
  Time wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_; });
    return time_;
  }
  Time time() const {
    const std::lock_guard lock(mutex_);
    return reached_ ? time_ : 0;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Time time_ = 0;
  bool reached_ = false;
};

struct ThreadEvent::Reached {
  explicit Reached(std::shared_ptr<Point> p) : point(std::move(p)) {}
  ~Reached() { point->reach(); }
  Reached(const Reached&) = delete;
  Reached& operator=(const Reached&) = delete;
  std::shared_ptr<Point> point;
};

ThreadEvent::ThreadEvent(std::shared_ptr<ThreadClock> clocks) : clocks_(std::move(clocks)), last_(new Point) {
  last_->reach();
}

void ThreadEvent::record(Stream* stream) {
  const auto point = std::make_shared<Point>();
  {
    const std::lock_guard lock(mutex_);
    last_ = point;
  }
  if (stream == nullptr) {
    point->note(clocks_->now());
    return point->reach();
  }
  // The destructor of Reached sets off the event, so that nobody waits for ever if this work is dropped because earlier
  // work of the stream has failed.
  stream->submit(
      [reached = std::make_shared<Reached>(point), clocks = clocks_] { reached->point->note(clocks->now()); });
}

bool ThreadEvent::ready() const { return last()->is_reached(); }
void ThreadEvent::synchronize() { clocks_->wait_until(last()->wait()); }
Time ThreadEvent::time() const { return last()->time(); }

void ThreadEvent::wait(Stream* stream) {
  if (stream == nullptr) return synchronize();
  stream->submit([point = last(), clocks = clocks_] { clocks->wait_until(point->wait()); });
}

std::shared_ptr<ThreadEvent::Point> ThreadEvent::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace trellis::device
