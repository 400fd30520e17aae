#include "trellis/torch/native/work.h"

namespace trellis::process_group {

Operation::Operation(About about, std::vector<at::Tensor> results)
    : Work(about.group->rank, about.type, about.title, results),
      about_(std::move(about)),
      results_(std::move(results)) {}

std::string Operation::description() const {
  std::string_view title = about_.title;
  if (const auto colon = title.find(':'); colon != title.npos) title.remove_prefix(colon + 1);
  return std::string(title) + " " + std::to_string(about_.number);
}

void Operation::complete(std::exception_ptr error) {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    if (completed_) return;
    completed_ = true;
    exception_ = error;
    if (about_.flights) about_.flights->ended(about_.flight, !error);
    if (recordFunctionEndCallback_) std::exchange(recordFunctionEndCallback_, nullptr)();
    future = future_;
  }
  cv_.notify_all();
  if (!future) return;
  auto self = c10::intrusive_ptr<Operation>::reclaim_copy(this);
  try {
    about_.completions->later([self, future, error] { self->settle(*future, error); });
  } catch (const std::runtime_error&) {  // the group is being shut down
    settle(*future, error);
  }
}

void Operation::settle(c10::ivalue::Future& future, std::exception_ptr error) const {
  if (error)
    future.setErrorIfNeeded(error);
  else
    future.markCompleted(at::IValue(results_));
}

c10::intrusive_ptr<c10::ivalue::Future> Operation::getFuture() {
  std::unique_lock lock(mutex_);
  if (future_) return future_;
  future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  if (completed_) {
    const auto future = future_;
    const auto error = exception_;
    lock.unlock();
    settle(*future, error);
    return future;
  }
  return future_;
}

bool Operation::wait(std::chrono::milliseconds timeout) {
  if (about_.recording) about_.recording->waits(about_.recorded);
  await(timeout);
  if (about_.recording) about_.recording->waited(about_.recorded);
  std::unique_lock lock(mutex_);
  if (!exception_) return true;
  const std::exception_ptr error = exception_;
  lock.unlock();
  if (about_.flights) about_.flights->write(static_cast<int>(about_.group->in_job(about_.group->rank)));
  std::rethrow_exception(error);
}

void Operation::await(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto ended = [this] { return completed_; };
  if (completed_) return;
  const bool own = timeout != kNoTimeout;  // the caller's own patience: the operation goes on
  if (!own && about_.timeout == kNoTimeout) return cv_.wait(lock, ended);
  const auto deadline = own ? std::chrono::steady_clock::now() + timeout : begun_ + about_.timeout;
  if (cv_.wait_until(lock, deadline, ended)) return;
  const auto waited = own ? timeout : about_.timeout;
  lock.unlock();
  const auto error = timed_out(description(), *about_.group, waited, about_.waits_for);
  if (own) std::rethrow_exception(error);
  complete(error);
  if (on_timeout_) on_timeout_();
}

void Operation::abort() {
  complete(as_torch_error(std::make_exception_ptr(ccl::Aborted("it was aborted by this rank")), description(),
                          *about_.group));
  if (on_timeout_) on_timeout_();
}

}  // namespace trellis::process_group
