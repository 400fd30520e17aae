// How a communicator fails on this rank, and what the others hear of it.
#include <exception>
#include <mutex>

#include "ccl/failure/ending.h"
#include "ccl/run/communicator_state.h"

namespace trellis::ccl {

void Communicator::State::tell(const std::exception_ptr& e, bool elsewhere) {
  if (failed_ || transport->over()) return;
  if (const auto lost = lost_rank(e); lost && !elsewhere) return transport->mark_lost(*lost);
  end_for_all(*transport, e, elsewhere, notice);
}

std::exception_ptr Communicator::State::fail(const std::exception_ptr& e) {
  transport->withdraw();
  const bool first = keep(e);
  dump_file.write();
  return dumped(e, first);
}

std::exception_ptr Communicator::State::fail_open(const std::exception_ptr& e, bool elsewhere) {
  time_.end();
  exchanging_ = false;
  agreement_.fail();
  transport->withdraw();
  const bool first = keep(e, elsewhere);
  if (dump_file.wanted()) dump_file.write(executor.pending());
  transport->rest();
  family.rests();
  return dumped(e, first);
}

// Returns what to throw.
std::exception_ptr Communicator::State::fail_unopened(const std::exception_ptr& e) {
  if (failed_ || transport->over() || is_found_by_all(e)) return e;
  tell(e);
  return fail(e);
}

// After the dump: the error, which tells if that could not be written.
std::exception_ptr Communicator::State::dumped(const std::exception_ptr& e, bool first) {
  if (!dump_file.wanted()) return e;
  std::exception_ptr told = dump_file.told_of(e);
  if (first) {
    const std::lock_guard lock(error_mutex_);
    error_ = told;
  }
  if (first) dump_others(*this);
  return told;
}

}  // namespace trellis::ccl
