#include "trellis/torch/native/progress/work.h"

#include <algorithm>

#include "trellis/torch/native/progress/python_signals.h"

namespace trellis::process_group {

TorchWork::TorchWork(About about, std::vector<at::Tensor> results)
    : Work(about.group->rank, about.type, about.title, results),
      about_(std::move(about)),
      results_(std::move(results)) {}

std::string name_in(std::string_view title) {
  const auto colon = title.find(':');
  return std::string(colon == title.npos ? title : title.substr(colon + 1));
}

std::string TorchWork::description() const { return name_in(about_.title) + " " + std::to_string(about_.number); }

void TorchWork::goes_on() {
  if (about_.recording) about_.recording->issued(about_.recorded);
  if (about_.timeout == kNoTimeout) return;
  const std::lock_guard lock(mutex_);
  if (completed_) return;
  deadline_ = std::chrono::steady_clock::now() + about_.timeout;
  about_.deadlines->add(deadline_, c10::intrusive_ptr<TorchWork>::reclaim_copy(this));
}

void TorchWork::was(std::vector<std::uint64_t> parts) {
  const std::lock_guard lock(mutex_);
  parts_ = std::move(parts);
}

void TorchWork::expire() {
  if (complete(timed_out(description(), *about_.group, about_.timeout, about_.waits_for), true) && on_timeout_)
    on_timeout_();
}

bool TorchWork::complete(std::exception_ptr error, bool dumps) {
  if (error && about_.flights && !isCompleted()) {  // before anybody hears of it: the process may end then
    about_.flights->ended(about_.flight, false);
    if (dumps) about_.flights->write(static_cast<int>(about_.group->in_job(about_.group->rank)));
  }
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    if (completed_) return false;
    if (deadline_ != DeadlineWatchdog::Moment::max()) about_.deadlines->remove(deadline_, this);
    completed_ = true;
    exception_ = error;
    if (!error && about_.flights) about_.flights->ended(about_.flight, true);
    if (about_.recording) about_.recording->ended(about_.recorded, source_, parts_);
    if (recordFunctionEndCallback_) std::exchange(recordFunctionEndCallback_, nullptr)();
    future = future_;
  }
  cv_.notify_all();
  if (!future) return true;
  auto self = c10::intrusive_ptr<TorchWork>::reclaim_copy(this);
  try {
    about_.completions->later([self, future, error] { self->settle(*future, error); });
  } catch (const std::runtime_error&) {  // the group is being shut down
    settle(*future, error);
  }
  return true;
}

void TorchWork::settle(c10::ivalue::Future& future, std::exception_ptr error) const {
  if (error)
    future.setErrorIfNeeded(error);
  else
    future.markCompleted(at::IValue(results_));
}

c10::intrusive_ptr<c10::ivalue::Future> TorchWork::getFuture() {
  std::unique_lock lock(mutex_);
  if (future_) return future_;
  if (about_.recording) about_.recording->taken(about_.recorded);
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

bool TorchWork::wait(std::chrono::milliseconds timeout) {
  if (about_.recording) about_.recording->waits(about_.recorded);
  await(timeout);
  if (about_.recording) about_.recording->waited(about_.recorded);
  std::unique_lock lock(mutex_);
  if (!exception_) return true;
  raise_kept();  // a signal's exception, if that ended the operation
  std::rethrow_exception(exception_);
}

void TorchWork::await(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto ended = [this] { return completed_; };
  if (completed_) return;
  expect_same_process(mark_, description(), *about_.group);  // only a thread of the parent could end it
  const bool looks = takes_signals();
  const auto end = timeout == kNoTimeout ? DeadlineWatchdog::Moment::max() : std::chrono::steady_clock::now() + timeout;
  for (auto now = std::chrono::steady_clock::now(); now < end; now = std::chrono::steady_clock::now()) {
    const auto until = looks ? std::min(end, now + between_looks_for_signals) : end;
    if (until == DeadlineWatchdog::Moment::max()) return cv_.wait(lock, ended);
    if (cv_.wait_until(lock, until, ended)) return;
    lock.unlock();
    raise_if_interrupted();  // if this or the timeout below throws, the operation goes on
    lock.lock();
  }
  std::rethrow_exception(timed_out(description(), *about_.group, timeout, about_.waits_for));
}

void TorchWork::abort() {
  const auto aborted = std::make_exception_ptr(ccl::Aborted("it was aborted by this rank"));
  if (complete(as_torch_error(aborted, description(), *about_.group), false) && on_timeout_) on_timeout_();
}

}  // namespace trellis::process_group
