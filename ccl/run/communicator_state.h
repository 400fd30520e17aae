// Internal state of a communicator and the life of its operations. Users see communicator.h alone.
#pragma once

#include <atomic>
#include <memory>

#include "ccl/communicator.h"
#include "ccl/failure/flight_recorder.h"
#include "ccl/failure/sibling_waits.h"
#include "ccl/plan/call_check.h"
#include "ccl/plan/planner.h"
#include "ccl/plan/point_to_point.h"
#include "ccl/run/device_agreement.h"
#include "ccl/run/executor.h"
#include "ccl/run/failure_state.h"
#include "ccl/run/scratch_pool.h"
#include "ccl/run/simulated_operation_time.h"
#include "ccl/run/ticket_lock.h"

namespace trellis::ccl {

// A checked call, kept until it runs.
struct CheckedCall {
  Call call = {};
  bool in_place = false;
  std::shared_ptr<const CallPlan> planned = nullptr;  // for a schedule that the caller supplied
};

struct Communicator::State : SignalDumpTarget {
  State(Config, std::shared_ptr<device::Device>, std::unique_ptr<Transport>, const FamilyMember* parent = nullptr,
        std::span<const Rank> in_parent = {});
  ~State() override;

  // An operation's life, see run_loop.h: open, then move until it returns true. What they throw ends the communicator.
  void open(const Call&, bool in_place, const CallPlan* = nullptr);
  void open(std::span<const SendRecv>);
  // Advances the open operation, and closes it when it ends. `alone`: returns only at that end. True: the operation has
  // ended. `moved` is set when something happened.
  bool move(bool alone, bool& moved);
  bool agrees_first() const { return agreement_.needed(); }
  void open_agreement(const Call&, bool supplied);                 // before the call itself is opened
  void idle(std::uint32_t times, std::chrono::microseconds most);  // see Executor::idle()
  // Ends the communicator and its open operation. Returns what to throw.
  std::exception_ptr fail_open(const std::exception_ptr&, bool elsewhere = false);
  // Ends the communicator, from any thread, and then writes its dump, unless an operation is running, which writes it
  // itself. `why` is null where the program aborts the communicator.
  struct End {
    std::exception_ptr why;
    bool first = false;  // nothing had ended it before
  };
  End end(const std::exception_ptr& why = nullptr);
  void dump(const End&, bool has_turn);
  void abort();
  void finish();  // no more calls will follow

  Rank rank() const { return rank_; }
  Rank ranks() const { return ranks_; }
  // null: this rank asked for no communicator
  std::unique_ptr<Communicator> divide(MembershipNotice::Call, std::vector<Rank> members, ColorKey = {});

  const Config config;
  const std::shared_ptr<device::Device> device;
  const std::unique_ptr<Transport> transport;
  FamilyMember family;
  Planner planner;
  FlightRecorder recorder;
  Executor executor;
  DumpFile dump_file;
  FailureState failure;
  // Batches hold it, too: as soon as one has released the lock, another thread may destroy the communicator.
  const std::shared_ptr<TicketLock> ticket_queue = std::make_shared<TicketLock>();
  TicketLock& tickets = *ticket_queue;
  CallCheck check;                            // used while holding the ticket lock
  BorrowedScratch scratch, scaled;            // for the open operation
  std::atomic<std::uint64_t> operations = 0;  // collectives only, so that all ranks have the same number
  std::vector<SendRecv> gathered;             // buffer for a group's sends and receives

 private:
  void close();
  std::uint64_t operation() const { return operations.load(std::memory_order_relaxed); }
  void start_operation() { operations.store(operation() + 1, std::memory_order_relaxed); }  // others only read it
  void bind(const Call&, const CallPlan&);
  void record(FlightRecorderEntry&, const Call&, const CallPlan*, bool native);  // plan null: the call's exchange
  void leave_agreed();
  template <class Record>
  void begin(Record);  // sets up the run of bound_
  bool dump_for(std::uint32_t request) override;
  bool dump_if_free();                      // false: an operation is running
  void answer_dumps(const Executor* open);  // by the operation's thread; null: it is in split or shrink
  kernels::Stores stores_for(std::size_t bytes_touched) const;
  const void* input_of(const Call&);
  schedule::UnreadableBuffers unreadable_of(const Call&);  // those for which staging is worth it

  const CallPlan& native_plan(const Call&);

  const Rank rank_, ranks_;
  const SharedCaches caches_;
  DeviceAgreement agreement_;
  bool exchanging_ = false;  // the open operation is the exchange before a call
  SimulatedOperationTime time_;
  std::atomic<std::uint32_t> dumps_;  // number of the last dump request that was handled

  // State of the open operation.
  CompiledProgram send_recvs_;
  std::vector<SendRecv> compiled_from_;  // what send_recvs_ was compiled from
  RankActivity activity_ = {.running = true};
  BoundProgram bound_;
  std::unique_ptr<device::NativeCollectiveRun> native_;
  CallPlan native_plan_;
  std::uint64_t calls_hash_ = 0;  // of all collectives so far
  std::size_t divided_ = 0;       // number of output elements that an average divides at the end
  friend class Communicator;
};

}  // namespace trellis::ccl
