#include "device/neuron/stream.h"

#include <utility>

namespace trellis::device {

NeuronStream::NeuronStream(std::shared_ptr<NeuronRuntime> runtime, int core, int queue)
    : runtime_(std::move(runtime)), core_(core), queue_(queue), errors_(*runtime_, core) {}

NeuronStream::~NeuronStream() {
  thread_.reset();
  try {
    settle();
  } catch (...) {  // nobody is left to report it to
  }
}

void NeuronStream::to_thread(std::function<void()> work) {
  struct Counted {
    explicit Counted(std::atomic<int>& n) : count(n) { ++count; }
    ~Counted() { --count; }  // also of work that is dropped
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    std::atomic<int>& count;
  };
  auto counted = std::make_shared<Counted>(in_thread_);
  if (!thread_) thread_ = std::make_unique<ThreadStream>();
  thread_->submit([counted = std::move(counted), work = std::move(work)] { work(); });
}

void NeuronStream::submit(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  to_thread([this, work = std::move(work)] {
    settle();
    work();
  });
}

void NeuronStream::add(Queued q) {
  const std::lock_guard lock(mutex_);
  const bool waits = in_thread_ != 0;  // read before has_failed(): failing work is counted until failed() is true
  if (!waits && !has_failed() && try_now(q)) return;
  to_thread([this, shared = std::make_shared<Queued>(std::move(q))] { wait_and_hand_in(*shared); });
}

bool NeuronStream::try_now(Queued& q) {
  forget_done();
  if (!pending_.empty() && pending_.front().unit != q.unit) return false;
  nrt::Sequence sequence = 0;
  const nrt::Status status =
      q.hand_in(q.unit == nrt::ExecutionUnit::compute ? 0 : queue_, errors_.tracker(), &sequence);
  if (status == nrt::Status::queue_full) return false;
  runtime_->check(status, q.function);
  pending_.push_back({q.unit, sequence, std::move(q.after)});
  last_function_ = q.function;
  return true;
}

void NeuronStream::wait_and_hand_in(Queued& q) {
  const auto deadline = std::chrono::steady_clock::now() + queue_patience;
  for (;;) {
    settle();
    {
      const std::lock_guard lock(mutex_);
      if (try_now(q)) return;
    }
    if (std::chrono::steady_clock::now() > deadline) runtime_->check(nrt::Status::queue_full, q.function);
    std::this_thread::sleep_for(std::chrono::microseconds(20));  // another stream's work fills the queue
  }
}

void NeuronStream::forget_done() const {
  while (!pending_.empty() && is_done(*runtime_, pending_.front().sequence)) {
    pending_.front().after();
    pending_.pop_front();
  }
}

void NeuronStream::settle() {
  std::optional<nrt::Sequence> last;
  std::string_view function;
  {
    const std::lock_guard lock(mutex_);
    if (!pending_.empty()) last = pending_.back().sequence;
    function = last_function_;
  }
  if (last) wait_for(*runtime_, *last, queue_patience);
  {
    const std::lock_guard lock(mutex_);
    forget_done();
  }
  errors_.check(function);
}

bool NeuronStream::idle() const {
  const std::lock_guard lock(mutex_);
  forget_done();
  return in_thread_ == 0 && pending_.empty();
}

bool NeuronStream::failed() const {
  const std::lock_guard lock(mutex_);
  return has_failed();
}

void NeuronStream::synchronize() {
  ThreadStream* thread = nullptr;
  {
    const std::lock_guard lock(mutex_);
    thread = thread_.get();
  }
  std::exception_ptr first;
  try {
    if (thread != nullptr) thread->synchronize();
  } catch (...) {
    first = std::current_exception();
  }
  try {
    settle();  // also after a failure: the queues may still write into the caller's memory
  } catch (...) {
    if (!first) throw;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace trellis::device
