#include "device/streams/default_stream_sync.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace trellis::device {

// State shared by the default stream and the streams that it orders. Work runs without its lock.
class DefaultStreamSync::Order {
 public:
  explicit Order(std::shared_ptr<Device> device) : device_(std::move(device)), default_(device_->stream()) {}

  std::unique_ptr<Stream> other() { return device_->stream(); }
  Stream& default_stream() { return *default_; }

  void add(Stream* other) {
    const std::lock_guard lock(mutex_);
    others_.push_back(other);
  }
  void remove(Stream* other) {
    const std::lock_guard lock(mutex_);
    std::erase(others_, other);
  }

  void submit_to_default(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    for (Stream* other : others_)
      if (!other->idle()) end_of(*other)->wait(default_.get());
    default_->submit(std::move(work));
    last_ = nullptr;  // only after submit(), which may throw
    ++handed_;
  }

  // `seen`: how much of the default stream's work this stream already waits for.
  void submit(Stream& other, std::uint64_t& seen, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (seen != handed_ && !default_->idle()) {
      if (last_ == nullptr) last_ = end_of(*default_);
      last_->wait(&other);
    }
    other.submit(std::move(work));
    seen = handed_;
  }

  bool others_idle() {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(others_, [](const Stream* other) { return other->idle(); });
  }

 private:
  std::unique_ptr<Event> end_of(Stream& stream) {
    auto event = device_->event();
    event->record(&stream);
    return event;
  }

  const std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::vector<Stream*> others_;
  std::unique_ptr<Event> last_;  // the end of the default stream's submitted work; null: not made yet
  std::uint64_t handed_ = 0;
  const std::unique_ptr<Stream> default_;  // last: its thread ends first
};

class DefaultStreamSync::Default : public Stream {
 public:
  explicit Default(std::shared_ptr<Order> order) : order_(std::move(order)) {}
  void submit(std::function<void()> work) override { order_->submit_to_default(std::move(work)); }
  bool idle() const override { return order_->default_stream().idle() && order_->others_idle(); }
  void synchronize() override { order_->default_stream().synchronize(); }
  bool failed() const override { return order_->default_stream().failed(); }

 private:
  const std::shared_ptr<Order> order_;
};

class DefaultStreamSync::Other : public Stream {
 public:
  explicit Other(std::shared_ptr<Order> order) : order_(std::move(order)), stream_(order_->other()) {
    order_->add(stream_.get());
  }
  ~Other() override {
    try {
      stream_->synchronize();  // the default stream may still be waiting for it
    } catch (...) {            // nobody is left to report it to
    }
    order_->remove(stream_.get());
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  void submit(std::function<void()> work) override { order_->submit(*stream_, seen_, std::move(work)); }
  bool idle() const override { return stream_->idle(); }
  void synchronize() override { stream_->synchronize(); }
  bool failed() const override { return stream_->failed(); }

 private:
  const std::shared_ptr<Order> order_;
  const std::unique_ptr<Stream> stream_;
  std::uint64_t seen_ = 0;
};

DefaultStreamSync::DefaultStreamSync(std::shared_ptr<Device> device)
    : order_(std::make_shared<Order>(std::move(device))), default_(std::make_shared<Default>(order_)) {}

std::shared_ptr<Stream> DefaultStreamSync::default_stream() const { return default_; }
std::unique_ptr<Stream> DefaultStreamSync::stream() const { return std::make_unique<Other>(order_); }

}  // namespace trellis::device
