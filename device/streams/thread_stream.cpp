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
    wake = std::exchange(asleep_, false);
  }
  if (wake) changed_.notify_one();
}

bool ThreadStream::Queue::empty() const {
  const std::lock_guard lock(mutex_);
  return works_.empty() || (works_.size() == 1 && head_is_done_);
}

bool ThreadStream::Queue::failed() const {
  const std::lock_guard lock(mutex_);
  return thrown_ != nullptr;
}

void ThreadStream::Queue::await() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  drained_.wait(lock, [&] { return works_.empty(); });
  --waiting_;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

// A piece of work stays at the head of the queue until it is destroyed. Its destructors may call the stream, so they
// run without the lock. They may also notify others, to whom the stream must already be idle: see head_is_done_.
void ThreadStream::Queue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!closing_ && works_.empty()) {
      asleep_ = true;
      changed_.wait(lock);
    }
    asleep_ = false;
    if (works_.empty()) return;
    std::function<void()> next = std::move(works_.front());
    const bool is_dropped = thrown_ != nullptr;
    lock.unlock();
    try {
      if (!is_dropped) next(), head_is_done_ = true;
    } catch (...) {
      const std::lock_guard failing(mutex_);
      thrown_ = std::current_exception();
    }
    next = nullptr;
    lock.lock();
    works_.pop_front();
    head_is_done_ = false;
    if (waiting_ != 0 && works_.empty()) drained_.notify_all();
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

ThreadEvent::ThreadEvent(std::shared_ptr<Clocks> clocks) : clocks_(std::move(clocks)), last_(new Point) {
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
  // The destruction of this piece reaches the point, so that nobody waits for ever if it is dropped because earlier
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
