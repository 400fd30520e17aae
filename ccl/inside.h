// What a communicator consists of; its users see communicator.h alone.
#pragma once

#include <atomic>
#include <mutex>

#include "ccl/check.h"
#include "ccl/communicator.h"
#include "ccl/dumped.h"
#include "ccl/executor.h"
#include "ccl/planner.h"
#include "ccl/points.h"
#include "ccl/recorder.h"
#include "ccl/room.h"
#include "ccl/turns.h"

namespace trellis::ccl {

// A call that has been checked, kept until it is run.
struct Operation {
  Call call = {};
  bool in_place = false;
  std::shared_ptr<const Planned> planned = nullptr;  // of a schedule of the caller's
};

struct Communicator::Inside : Dumped {
  Inside(Config, std::shared_ptr<device::Device>, std::shared_ptr<Store>, std::unique_ptr<Transport>);
  ~Inside() override;

  // An operation's life: open, then executor.move() until it is done, then close. What it throws ends the communicator.
  void open(const Call&, bool in_place, const Planned* = nullptr);
  void open(std::span<const Point>);
  void close();
  void run();                             // what is open, to its end
  void idle(std::uint32_t times);         // so often in a row nothing has moved
  void tell_of_loss(std::exception_ptr);  // everybody, if it is a PeerLost of this communicator
  void fail(std::exception_ptr);
  void abort();              // from any thread
  std::string dump() const;  // the flight recorder's
  void check_well();         // throws what ended the communicator
  void finish();             // nothing more will be called

  Rank rank() const { return rank_; }
  Rank ranks() const { return ranks_; }
  std::unique_ptr<Communicator> child(std::span<const Rank> members);

  const Config config;
  const std::shared_ptr<device::Device> device;
  const std::shared_ptr<Store> store;
  const std::unique_ptr<Transport> transport;
  Planner planner;
  Executor executor;
  FlightRecorder recorder;
  Turns turns;
  CallCheck check;                            // in a turn
  Lent scratch, scaled;                       // of the operation that is open
  std::atomic<std::uint64_t> operations = 0;  // collectives, for which all ranks count alike
  std::uint32_t rounds = 0;                   // of exchange
  std::vector<Point> gathered;                // room for those of a group

 private:
  void begin();                   // job_
  void keep(std::exception_ptr);  // as what ended the communicator, if it is the first
  bool dump_for(std::uint32_t request) override;
  bool dump_if_free();  // false: an operation is under way
  kernels::Stores stores_for(std::size_t bytes_touched) const;
  void write_dump() const;
  const void* input_of(const Call&);
  schedule::Hidden hidden_of(const Call&);  // as far as it matters

  const Rank rank_, ranks_;
  const std::size_t cache_share_;                // of the last cache, for each rank; 0: none is known
  mutable std::mutex error_mutex_, dump_mutex_;  // the latter: its file
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false, failure_dumped_ = false;
  std::atomic<std::uint32_t> dumps_;  // requested, and written

  // Of the operation that is open.
  Compiled points_;
  std::vector<Point> compiled_points_;  // what points_ was made of
  Activity activity_ = {.running = true};
  Job job_;
  std::size_t divided_ = 0;  // elements of the output that an average divides at the end
  friend class Communicator;
};

}  // namespace trellis::ccl
