// How a communicator fails on this rank: the error that ended it, what the others hear of it, and its dump.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>

#include "ccl/failure/dump_file.h"
#include "ccl/failure/dump_on_signal.h"
#include "ccl/transports/membership_notice.h"

namespace trellis::ccl {

class FailureState {
 public:
  // `owner`: the communicator itself. When it fails, the others of its process are made to write their dumps too.
  FailureState(Transport& transport, DumpFile& dump_file, const SignalDumpTarget& owner)
      : transport_(transport), dump_file_(dump_file), owner_(owner) {}

  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  std::exception_ptr error() const;  // that ended it; null: it works
  void expect_well() const {         // throws the error, if this rank knows of one
    if (failed()) rethrow();
  }
  void check_health();   // the same, also where another rank has aborted
  void expect_whole() {  // before an operation: no rank is lost and none has aborted
    if (transport_.over()) refuse();
    if (failed()) check_health();
  }

  // Tells all ranks why this one ends the communicator. Call it while holding the communicator's ticket lock.
  void tell(const std::exception_ptr&, bool elsewhere = false);
  std::exception_ptr fail(const std::exception_ptr&);           // returns what to throw; so does the next
  std::exception_ptr fail_unopened(const std::exception_ptr&);  // ends it unless all ranks find the error themselves

  // Keeps the error as the one that ended the communicator; false: there was an earlier one.
  bool keep(const std::exception_ptr&, bool elsewhere = false);
  // Called after the error's dump: returns what to throw, which says so if the dump could not be written. `first`: the
  // error ended the communicator.
  std::exception_ptr dumped(const std::exception_ptr&, bool first);

  MembershipNotice notice;  // on this rank's board

 private:
  [[noreturn]] void rethrow() const;
  [[gnu::cold]] void refuse();

  Transport& transport_;
  DumpFile& dump_file_;
  const SignalDumpTarget& owner_;
  mutable std::mutex mutex_;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;
};

}  // namespace trellis::ccl
