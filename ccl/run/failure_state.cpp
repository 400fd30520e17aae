#include "ccl/run/failure_state.h"

#include "ccl/failure/blame.h"
#include "ccl/failure/end_for_all.h"

namespace trellis::ccl {

std::exception_ptr FailureState::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void FailureState::rethrow() const { std::rethrow_exception(error()); }

void FailureState::check_health() {
  if (transport_.aborted()) fail(ended_by(transport_));
  expect_well();
}

// Messages sent before the failure may still be queued, so no operation may start.
void FailureState::refuse() {
  if (!failed() && transport_.lost() >= 0) fail(std::make_exception_ptr(lost_before(transport_)));
  check_health();
}

void FailureState::tell(const std::exception_ptr& e, bool elsewhere) {
  if (failed() || transport_.over()) return;
  if (const auto lost = lost_rank(e); lost && !elsewhere) return transport_.mark_lost(*lost);
  end_for_all(transport_, e, elsewhere, notice);
}

std::exception_ptr FailureState::fail(const std::exception_ptr& e) {
  transport_.withdraw();
  const bool first = keep(e);
  dump_file_.write();
  return dumped(e, first);
}

std::exception_ptr FailureState::fail_unopened(const std::exception_ptr& e) {
  if (failed() || transport_.over() || is_found_by_all(e)) return e;
  tell(e);
  return fail(e);
}

bool FailureState::keep(const std::exception_ptr& e, bool elsewhere) {
  const std::lock_guard lock(mutex_);
  if (error_) return false;
  dump_file_.note(e, elsewhere);
  error_ = e;
  return failed_ = true;
}

std::exception_ptr FailureState::dumped(const std::exception_ptr& e, bool first) {
  if (!dump_file_.wanted()) return e;
  std::exception_ptr told = dump_file_.told_of(e);
  if (first) {
    const std::lock_guard lock(mutex_);
    error_ = told;
  }
  if (first) dump_others(owner_);
  return told;
}

}  // namespace trellis::ccl
