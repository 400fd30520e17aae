// Runs a rank's compiled program on real memory, over a transport, to its end or to a clear error.
#pragma once

#include <vector>

#include "ccl/compiled.h"
#include "ccl/transport.h"
#include "device/device.h"

namespace trellis::ccl {

// What a program is run on.
struct Job {
  const Compiled* compiled = nullptr;
  const void* input = nullptr;
  void* output = nullptr;
  void* scratch = nullptr;
  kernels::DType type = kernels::DType::u8;
  kernels::Reduction op = kernels::Reduction::sum;
  kernels::ReduceOptions how = {};  // rounding and random bits
  std::uint32_t mark = 0;           // equal on all ranks when they run the same thing
  bool tokens = false;              // messages without bytes are sent too: they say that somebody has come
};

class Executor {
 public:
  Executor(Transport&, device::Device&, std::chrono::milliseconds timeout);

  // All of these throw PeerLost, Mismatch, Aborted. The transport is of no use after that.
  void run(const Job&, const Activity&);

  // The same in pieces, so that one thread can run several executors: begin(), then move() until done(), with idle()
  // called when none of them has moved. The job stays where it is until then.
  void begin(const Job&, const Activity&);
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

  void look_around();          // nothing has come for a while
  const Front* stuck() const;  // the first line that waits for a peer

  std::byte* at(const Place& p) const {
    return reinterpret_cast<std::byte*>(bases_[static_cast<std::size_t>(p.buffer)] + p.first * size_);
  }

  Transport& transport_;
  device::Device& device_;
  std::chrono::milliseconds timeout_;

  const Job* job_ = nullptr;
  Activity activity_;
  std::uintptr_t bases_[3] = {};
  std::size_t size_ = 1;
  std::vector<Front> fronts_;
  std::size_t live_ = 0;  // fronts that have messages left come first
  std::vector<std::uint32_t> waits_;
  std::vector<std::uint8_t> ends_;
  std::vector<std::uint32_t> ready_;  // local steps
  std::vector<const void*> sources_;
  std::size_t left_ = 0;
  Clock::time_point waiting_since_ = {};
  bool waiting_ = false;  // since then
};

}  // namespace trellis::ccl
