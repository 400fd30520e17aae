// An operation of a process group: what torch calls a Work.
#pragma once

#include <memory>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "device/fork_mark.h"
#include "trellis/torch/native/progress/deadline_watchdog.h"
#include "trellis/torch/native/progress/torch_errors.h"
#include "trellis/torch/native/progress/worker.h"
#include "trellis/torch/native/records/communication_recorder.h"
#include "trellis/torch/native/records/torch_flight_recorder.h"

namespace trellis::process_group {

std::string name_in(std::string_view title);  // "all_reduce", in "trellis:all_reduce"

class TorchWork : public c10d::Work {
 public:
  struct About {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char* title = nullptr;  // "trellis:all_reduce"
    std::uint64_t number = 0;
    std::chrono::milliseconds timeout = kNoTimeout;  // 0: the communicator's own timeout ends it
    int waits_for = -1;                              // the rank at the other end of a message
    std::shared_ptr<const Membership> group;
    Worker* completions = nullptr;                     // runs callbacks of futures; outlives every unfinished operation
    DeadlineWatchdog* deadlines = nullptr;             // lives as long as completions
    std::shared_ptr<CommunicationRecorder> recording;  // null: it is not recorded
    std::uint64_t recorded = 0;                        // its number there
    TorchFlightRecorder* flights = nullptr;            // null: not recorded there
    std::uint64_t flight = 0;                          // its number there
  };
  TorchWork(About, std::vector<at::Tensor> results);

  // Runs the operation with run(), then completes this Work: with an error if run() throws.
  template <class Run>
  void perform(Run&& run) {
    const at::AutoDispatchBelowADInplaceOrView plainly;  // no operation is recorded for gradients
    std::exception_ptr error;
    bool dumps = false;
    if (about_.flights) about_.flights->started(about_.flight);
    try {
      run();
    } catch (...) {
      dumps = is_failure(std::current_exception(), about_.group->rank);
      error = as_torch_error(std::current_exception(), description(), *about_.group);
    }
    complete(error, dumps);
  }
  void goes_on();                              // it has been issued: its timeout starts
  void expire();                               // fails it, as its timeout has passed
  void from(int source) { source_ = source; }  // the sender, for a receive from any source
  void was(std::vector<std::uint64_t> parts);  // for the recording: bytes of each collective that ran for it

  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::vector<at::Tensor> result() override { return results_; }
  int sourceRank() const override { return source_; }
  void abort() override;
  std::uint64_t getSequencenumber() const override { return about_.number; }
  void on_timeout(std::function<void()> what) { on_timeout_ = std::move(what); }  // call it before goes_on()

  std::string description() const;  // "all_reduce 12"
  const Membership& group() const { return *about_.group; }

 private:
  // Returns false and does nothing if it is complete already. `dumps`: write torch's flight records.
  bool complete(std::exception_ptr, bool dumps);
  void settle(c10::ivalue::Future&, std::exception_ptr) const;
  void await(std::chrono::milliseconds timeout);

  const device::ForkMark mark_;
  About about_;
  std::vector<at::Tensor> results_;
  DeadlineWatchdog::Moment deadline_ = DeadlineWatchdog::Moment::max();  // with the mutex held
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::function<void()> on_timeout_;
  int source_ = -1;
  std::vector<std::uint64_t> parts_;  // with the mutex held
};

}  // namespace trellis::process_group
