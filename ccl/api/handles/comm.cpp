#include "ccl/api/handles/comm.h"

#include <utility>

#include "ccl/api/handles/exception_boundary.h"

namespace trellis::ccl::api {

Comm::~Comm() {
  try {
    close();
  } catch (...) {  // nobody is left to report it to
  }
}

Communicator& Comm::made() const {
  if (busy())
    throw UsageError("the communicator is in progress: wait until its async error is no longer 'in progress'");
  if (!communicator_) std::rethrow_exception(failed_);
  return *communicator_;
}

Communicator& Comm::ready() const {
  Communicator& communicator = made();
  if (finalized_) throw UsageError("the communicator was finalized");
  return communicator;
}

std::exception_ptr Comm::error() const {
  const std::lock_guard lock(mutex_);
  if (busy()) return nullptr;
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
  cancelled_ = busy();
  if (communicator_) communicator_->abort();
}

void Comm::close() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stage_ != Stage::running; });
    if (recorded()) return;
  }
  join_thread();
  if (!communicator_ || std::exchange(closed_, true)) return;
  const bool was_well = error() == nullptr;
  try {
    communicator_->finalize();  // what its streams hold must end before it is destroyed
  } catch (...) {
    if (was_well) throw;
  }
}

// Detaches the thread if it is the caller, which cannot join itself: the job's thread may hold the last reference.
void Comm::join_thread() {
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

void Comm::take(Stage stage) {
  const std::lock_guard lock(mutex_);
  if (busy()) throw UsageError("the communicator is in progress already");
  cancelled_ = false;
  grouped_ = stage == Stage::recorded;
  stage_ = stage;
}

void Comm::start() {
  const std::lock_guard lock(mutex_);
  stage_ = Stage::running;
}

void Comm::do_beside(std::function<void()> job) {
  join_thread();  // of an earlier job, which has ended
  thread_ = std::thread(std::move(job));
}

void Comm::end(std::exception_ptr failed) {
  const std::lock_guard lock(mutex_);
  if (failed) failed_ = std::move(failed);
  stage_ = Stage::none;
  changed_.notify_all();
}

void Comm::set(std::unique_ptr<Communicator> made) {
  const std::lock_guard lock(mutex_);
  communicator_ = std::move(made);
  if (*given_up_) communicator_->abort();
}

}  // namespace trellis::ccl::api
