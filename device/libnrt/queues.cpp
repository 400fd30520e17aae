#include "device/libnrt/queues.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <system_error>

namespace trellis::device::nrt {
namespace {

// The documented limit of executions in flight; other queues are longer.
constexpr std::size_t most_executions = 63, most_others = 4096;

// The unit's number in a sequence: core, unit, queue.
std::uint16_t id_of(std::uint32_t vnc, ExecutionUnit unit, int queue) {
  return static_cast<std::uint16_t>(vnc << 5 | static_cast<std::uint32_t>(unit) << 2 |
                                    static_cast<std::uint32_t>(queue));
}

void make_readable(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(fd, &one, sizeof one);
}

}  // namespace

int queues_of(ExecutionUnit unit) {
  switch (unit) {
    case ExecutionUnit::compute:
      return 1;
    case ExecutionUnit::collectives:
      return 3;
    case ExecutionUnit::tensor_read:
    case ExecutionUnit::tensor_write:
    case ExecutionUnit::tensor_op:
      return 2;
  }
  refuse(Status::invalid, "execution unit {}: expected 0 to {}", static_cast<int>(unit), unit_count - 1);
}

void ErrorTrackerObject::add(Sequence sequence, Status status) {
  const std::lock_guard lock(mutex_);
  errors_.push_back({sequence, static_cast<std::uint64_t>(status)});
}

std::pair<const AsyncError*, std::size_t> ErrorTrackerObject::list() {
  const std::lock_guard lock(mutex_);
  if (errors_.empty()) return {nullptr, 0};
  if (shown_.empty() || shown_.back().size() != errors_.size()) shown_.push_back(errors_);
  return {shown_.back().data(), shown_.back().size()};
}

Queue::Queue(Device& device, std::uint16_t id, std::size_t most_waiting)
    : id_(id), most_waiting_(most_waiting), stream_(device.stream()) {}

void Queue::close() {
  std::unique_ptr<Stream> stream;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    stream = std::move(stream_);
  }
  stream.reset();  // without the lock: this waits for the running work, which takes it
  const std::lock_guard lock(mutex_);
  for (const auto& [count, fd] : waiting_files_) ::close(fd);
  waiting_files_.clear();
}

Sequence Queue::add(std::function<void()> work, std::shared_ptr<ErrorTrackerObject> errors) {
  const std::lock_guard lock(mutex_);
  if (closing_) refuse(Status::closed, "nrt_close was called");
  if (handed_in_ - completed_ >= most_waiting_)
    refuse(Status::queue_full, "{} pieces of work wait there; that is the most", most_waiting_);
  const std::uint64_t count = ++handed_in_;
  stream_->submit(
      [this, count, work = std::move(work), errors = std::move(errors)] { run(work, count, errors.get()); });
  return sequence(count);
}

void Queue::run(const std::function<void()>& work, std::uint64_t count, ErrorTrackerObject* errors) {
  bool dropped = false;
  {
    const std::lock_guard lock(mutex_);
    dropped = closing_;
  }
  const Status status = dropped ? Status::closed : guarded("queued work", work);
  if (status != Status::success && errors != nullptr)
    guarded("an error of queued work", [&] { errors->add(sequence(count), status); });
  const std::lock_guard lock(mutex_);
  completed_ = count;
  while (!waiting_files_.empty() && waiting_files_.begin()->first <= count) {
    make_readable(waiting_files_.begin()->second);
    ::close(waiting_files_.begin()->second);
    waiting_files_.erase(waiting_files_.begin());
  }
  changed_.notify_all();
}

Sequence Queue::last_completed() const {
  const std::lock_guard lock(mutex_);
  return sequence(completed_);
}

bool Queue::is_completed(std::uint64_t count) const {
  const std::lock_guard lock(mutex_);
  if (count == 0 || count > handed_in_)
    refuse(Status::invalid, "sequence number {}: this queue has handed out 1 to {}", count, handed_in_);
  return count <= completed_;
}

int Queue::completion_file(std::uint64_t count) {
  const bool done = is_completed(count);
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "a completion handle");
  const std::lock_guard lock(mutex_);
  if (done || count <= completed_) {
    make_readable(fd);
    return fd;
  }
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);  // the caller may close theirs before it is complete
  if (own < 0) {
    ::close(fd);
    throw std::system_error(errno, std::generic_category(), "a completion handle");
  }
  waiting_files_.emplace(count, own);
  return fd;
}

bool Queue::wait_until_empty(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [&] { return completed_ == handed_in_; });
}

std::shared_ptr<Queue> Queues::of(Device& device, std::uint32_t vnc, ExecutionUnit unit, int queue) {
  if (queue < 0 || queue >= queues_of(unit))
    refuse(Status::invalid, "queue {}: this execution unit has {}", queue, queues_of(unit));
  const std::uint16_t id = id_of(vnc, unit, queue);
  const std::lock_guard lock(mutex_);
  if (closed_) refuse(Status::closed, "nrt_close was called");
  auto& kept = queues_[id];
  if (!kept) kept = std::make_shared<Queue>(device, id, unit == ExecutionUnit::compute ? most_executions : most_others);
  return kept;
}

std::shared_ptr<Queue> Queues::find(Sequence sequence) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(static_cast<std::uint16_t>(sequence >> sequence_count_bits));
  return found == queues_.end() ? nullptr : found->second;
}

std::shared_ptr<Queue> Queues::find(std::uint32_t vnc, ExecutionUnit unit, int queue) {
  if (queue < 0 || queue >= queues_of(unit))
    refuse(Status::invalid, "queue {}: this execution unit has {}", queue, queues_of(unit));
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(id_of(vnc, unit, queue));
  return found == queues_.end() ? nullptr : found->second;
}

void Queues::close() {
  std::map<std::uint16_t, std::shared_ptr<Queue>> ended;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    ended.swap(queues_);
  }
  for (const auto& [id, queue] : ended) queue->close();
}

}  // namespace trellis::device::nrt
