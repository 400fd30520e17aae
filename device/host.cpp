// The host as a device: memory from an Arena, arithmetic from kernels/, threads as streams.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>

#include "device/arena.h"

namespace trellis::device {
namespace {

class HostStream : public Stream {
 public:
  HostStream() : thread_([this] { work(); }) {}
  ~HostStream() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void submit(std::function<void()> work) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    changed_.notify_all();
  }
  bool idle() const override {
    const std::lock_guard lock(mutex_);
    return queue_.empty();
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty(); });
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  // A piece of work stays at the head of the queue until it is done.
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::function<void()> next = std::move(queue_.front());
      lock.unlock();
      std::exception_ptr thrown;
      try {
        next();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      if (thrown && !thrown_) thrown_ = thrown;
      if (thrown) drop_the_rest(lock);
      queue_.pop_front();
      changed_.notify_all();
    }
  }

  // Destroys the queued work without the lock, since its destructors may notify others. The failed piece stays in the
  // queue, so that the stream does not look idle meanwhile.
  void drop_the_rest(std::unique_lock<std::mutex>& lock) {
    std::deque<std::function<void()>> rest;
    std::move(queue_.begin() + 1, queue_.end(), std::back_inserter(rest));
    queue_.resize(1);
    lock.unlock();
    rest.clear();
    lock.lock();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::exception_ptr thrown_;
  bool closing_ = false;
  std::thread thread_;  // last: it uses all members above
};

class HostEvent : public Event {
 public:
  void record(Stream* stream) override {
    const auto point = std::make_shared<Point>();
    {
      const std::lock_guard lock(mutex_);
      last_ = point;
    }
    if (stream == nullptr) return point->reach();
    // If earlier work of the stream fails, this piece is dropped, which reaches the point too, so nobody waits for
    // ever.
    stream->submit([reached = std::make_shared<Reached>(point)] {});
  }
  bool ready() const override { return last()->is_reached(); }
  void synchronize() override { last()->wait(); }
  void wait(Stream* stream) override {
    if (stream == nullptr) return synchronize();
    stream->submit([point = last()] { point->wait(); });
  }

 private:
  class Point {
   public:
    void reach() {
      const std::lock_guard lock(mutex_);
      reached_ = true;
      changed_.notify_all();
    }
    bool is_reached() {
      const std::lock_guard lock(mutex_);
      return reached_;
    }
    void wait() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return reached_; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool reached_ = false;
  };
  struct Reached {
    explicit Reached(std::shared_ptr<Point> p) : point(std::move(p)) {}
    ~Reached() { point->reach(); }
    Reached(const Reached&) = delete;
    Reached& operator=(const Reached&) = delete;
    std::shared_ptr<Point> point;
  };
  std::shared_ptr<Point> last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  static std::shared_ptr<Point> reached_point() {
    auto point = std::make_shared<Point>();
    point->reach();
    return point;
  }

  mutable std::mutex mutex_;
  std::shared_ptr<Point> last_ = reached_point();
};

class Host : public Device {
 public:
  std::string_view name() const override { return "host"; }
  void* allocate(std::size_t bytes) override { return arena_.allocate(bytes); }
  void release(void* pointer) override { arena_.release(pointer); }
  Window window() const override { return arena_.window(); }
  InWindow find(const void* data, std::size_t bytes) const override { return arena_.find(data, bytes); }
  std::unique_ptr<Shared> share(void* data, std::size_t bytes) override { return arena_.share(data, bytes); }
  std::size_t allocated_bytes() const override { return arena_.allocated_bytes(); }
  void copy(void* dst, const void* src, std::size_t bytes, kernels::Stores stores) override {
    kernels::copy(dst, src, bytes, stores);
  }
  void reduce(kernels::Reduction op, kernels::DType type, std::span<const void* const> sources, void* dst,
              std::size_t n, const kernels::ReduceOptions& o) override {
    kernels::reduce(op, type, sources, dst, n, o);
  }
  void divide(kernels::DType type, void* data, std::size_t n, std::uint32_t divisor) override {
    kernels::divide(type, data, n, divisor);
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<HostStream>(); }
  std::unique_ptr<Event> event() override { return std::make_unique<HostEvent>(); }

 private:
  Arena arena_;
};

}  // namespace

std::shared_ptr<Device> open_host() { return std::make_shared<Host>(); }

}  // namespace trellis::device
