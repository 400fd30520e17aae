// Executor: runs a rank's compiled program on real memory, over a transport, until it ends or fails with a clear error.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "ccl/failure/flight_recorder.h"
#include "ccl/failure/heartbeat_monitor.h"
#include "ccl/failure/rank_dump.h"
#include "ccl/failure/sibling_waits.h"
#include "ccl/run/bound_program.h"
#include "ccl/run/round_runner.h"
#include "ccl/run/rounding_arithmetic.h"
#include "ccl/run/runnable_steps.h"
#include "ccl/transports/transport.h"

namespace trellis::ccl {

// How long a thread sleeps that waits for one communicator (transports have shorter limits), and for one of several.
inline constexpr std::chrono::microseconds longest_idle = std::chrono::seconds(1), brief_idle{200};

class Executor {
 public:
  // `past`: the operations that were run, for error messages.
  Executor(Transport&, FamilyMember&, const FlightRecorder& past, device::Device&, std::chrono::milliseconds timeout);

  // The run is split so that one thread can drive several executors: begin(), then move() until done(), with idle()
  // when none of them has moved, then end(). The program must stay in place until end(). begin() sends small
  // messages, so the caller's other work overlaps with the transfer.
  //
  // All of these throw PeerLost, Mismatch, Aborted. The transport cannot be used after that.
  void begin(const BoundProgram&);
  bool move();  // true when something happened
  bool done() const { return steps_.done() && native_ == nullptr; }
  // times: calls in a row in which nothing moved; most: how long it may sleep.
  void idle(std::uint32_t times, std::chrono::microseconds most);
  void end();
  std::vector<PendingMessage> pending() const;  // the messages that it waits for

 private:
  // The progress of one lane's messages in one direction: the next message, and how far that has come.
  struct Front {
    const LaneMessages* line = nullptr;
    Sender* sender = nullptr;
    Receiver* receiver = nullptr;
    std::uint32_t next = 0;
    bool begun = false;
    Sending sending = {};
    Receiving receiving = {};
  };

  bool advance(Front&);
  template <class Function>
  void explaining(Function&&);
  bool start(Front&, std::uint32_t step);
  std::uint32_t next_of(const Front&) const;       // step of its next message
  std::size_t bytes_of(std::uint32_t step) const;  // of a message
  void begin_lines(const CompiledProgram&);
  bool move_messages();
  void run_local(std::uint32_t step);
  static void take(void* self, std::uint32_t step, std::size_t offset, const std::byte* piece, std::size_t bytes);
  static void take_whole(void* self, std::uint32_t step, const std::byte* message);
  static void sum(void* self, std::uint32_t step, std::span<const void* const> sources);
  void take_piece(const CompiledStep&, std::size_t offset, const std::byte* piece, std::size_t bytes);
  static void make(void* self, std::uint32_t step, std::size_t offset, std::byte* piece, std::size_t bytes);

  void look_around();                              // after a while without messages
  std::optional<RoundRunner::Wait> stuck() const;  // the first message that a peer has not sent or taken
  // The first rank that has not come to this native collective, else one whose device has not ended it; -1: none.
  Rank unfinished_in_native() const;
  bool never_comes(Deadline now) const;  // a needed rank has not come within the timeout, though data still move

  Transport& transport_;
  FamilyMember& family_;
  const FlightRecorder& past_;
  device::Device& device_;
  std::chrono::milliseconds timeout_;
  RoundingArithmetic rounder_;

  const BoundProgram* bound_ = nullptr;
  device::NativeCollectiveRun* native_ = nullptr;  // until it is done
  const Producer producer_{make, this};
  bool rounded_ = false;  // the rounder does the arithmetic
  RunnableSteps steps_;
  std::optional<RoundRunner> all_to_all_;  // where ranks share memory
  std::vector<Front> fronts_;
  std::vector<std::uint32_t> live_;  // fronts with messages left
  std::vector<const void*> sources_;
  HeartbeatMonitor watch_;
  Clock::time_point waiting_since_ = {};
  bool waiting_ = false;  // nothing has moved since waiting_since_
  bool shown_ = false;    // this operation has waited before
  std::uint64_t arrivals_ = 0;
};

}  // namespace trellis::ccl
