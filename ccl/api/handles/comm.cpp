#include "ccl/api/handles/comm.h"

#include "ccl/api/handles/boundary.h"

namespace trellis::ccl::api {

Comm::~Comm() {
  if (thread_.joinable()) thread_.join();
}

Communicator& Comm::made() const {
  if (busy_) throw Usage("the communicator is in progress: wait until its async error is no longer 'in progress'");
  if (!communicator_) std::rethrow_exception(failed_);
  return *communicator_;
}

Communicator& Comm::ready() const {
  Communicator& communicator = made();
  if (finalized_) throw Usage("the communicator was finalized");
  return communicator;
}

std::exception_ptr Comm::error() const {
  const std::lock_guard lock(mutex_);
  if (busy_) return nullptr;
  if (const std::exception_ptr ended = communicator_ ? communicator_->error() : nullptr) return ended;
  return failed_;
}

bool Comm::stopping() const {
  const std::lock_guard lock(mutex_);
  return communicator_ && communicator_->stopping();
}

bool Comm::has_communicator() const {
  const std::lock_guard lock(mutex_);
  return communicator_ != nullptr;
}

void Comm::give_up() {
  const std::lock_guard lock(mutex_);
  *given_up_ = true;
  if (communicator_) communicator_->abort();
}

void Comm::take() {
  if (busy_.exchange(true)) throw Usage("the communicator is in progress already");
}

void Comm::do_beside(std::function<void()> job) {
  if (thread_.joinable()) thread_.join();  // the thread of an earlier job, which has ended
  thread_ = std::thread(std::move(job));
}

void Comm::end(std::exception_ptr failed) {
  const std::lock_guard lock(mutex_);
  if (failed) failed_ = std::move(failed);
  busy_ = false;
  changed_.notify_all();
}

void Comm::set(std::unique_ptr<Communicator> made) {
  const std::lock_guard lock(mutex_);
  communicator_ = std::move(made);
  if (*given_up_) communicator_->abort();
}

void Comm::await() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_; });
}

}  // namespace trellis::ccl::api
