// Runs a rank's compiled program on real memory, over a transport, to its end or to a clear error.
#pragma once

#include <vector>

#include "ccl/job.h"
#include "ccl/rounder.h"
#include "ccl/transport.h"

namespace trellis::ccl {

class Executor {
 public:
  Executor(Transport&, device::Device&, std::chrono::milliseconds timeout);

  // In pieces, so that one thread can run several executors: begin(), then move() until done(), with idle() called when
  // none of them has moved, then end(). The job stays where it is until then. What can be sent leaves in begin():
  // whatever the caller has to do besides is done while it is on its way.
  //
  // All of these throw PeerLost, Mismatch, Aborted. The transport is of no use after that.
  void begin(const Job&);
  bool move();  // true when something happened
  bool done() const { return left_ == 0 && ready_.empty(); }
  void idle(std::uint32_t times);  // so often in a row
  void end();

 private:
  // A line under way.
  struct Front {
    const Line* line = nullptr;
    Sender* sender = nullptr;
    Receiver* receiver = nullptr;
    std::uint32_t next = 0;
    bool begun = false;
    Sending sending = {};
    Receiving receiving = {};
  };

  bool advance(Front&);
  bool start(Front&, std::uint32_t step);
  void finish(std::uint32_t step);
  void run_local(std::uint32_t step);
  static void take(void* self, std::uint32_t step, std::size_t offset, const std::byte* piece, std::size_t bytes);
  void take_piece(const FlatStep&, std::size_t offset, const std::byte* piece, std::size_t bytes);
  static void make(void* self, std::uint32_t step, std::size_t offset, std::byte* piece, std::size_t bytes);

  void look_around();          // nothing has come for a while
  const Front* stuck() const;  // the first line that waits for a peer

  Transport& transport_;
  device::Device& device_;
  std::chrono::milliseconds timeout_;
  Rounder rounder_;

  const Job* job_ = nullptr;
  const Producer producer_{make, this};
  bool rounds_ = false;  // the rounder does the arithmetic
  std::vector<Front> fronts_;
  std::vector<std::uint32_t> live_;  // fronts that have messages left
  std::vector<Ahead> ahead_;
  std::vector<std::uint32_t> ready_;  // local steps
  std::vector<const void*> sources_;
  std::size_t left_ = 0;
  Clock::time_point waiting_since_ = {};
  bool waiting_ = false;  // since then
};

}  // namespace trellis::ccl
