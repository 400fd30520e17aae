// One run of a program: the instruction streams of its engines, and the semaphores between them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "sim/core/run/dma_rings.h"
#include "sim/core/run/run.h"

namespace trellis::sim::core {

class CoreSimulator {
 public:
  CoreSimulator(const NeuronCoreProgram&, const ChipSpec&, const RunOptions&);
  RunTotals run();

 private:
  // What is known of an instruction before it runs.
  struct Prepared {
    InstructionCost cost;
    std::int32_t work = -1;   // of a DMA: its index in works_
    std::int16_t table = -1;  // of Scalar's functions
    std::int16_t rows = 0;    // of Tensor's array: how many it uses
    std::uint32_t label = 0;
  };
  struct Loop {
    std::size_t first;  // the index after the loop's head
    std::int64_t left;  // iterations after this one
    double step;
    std::size_t target;
  };
  struct ArrayWork {  // an instruction of Tensor
    Time start, end;
    double rows;  // of the array that it uses, times its rate
  };
  struct Stream {
    std::vector<std::uint32_t> order;  // its instructions
    std::size_t next = 0;
    Time free = 0;                      // when it can start another instruction
    Time done = 0;                      // end of the last one, as results come in order
    WaitReason why = WaitReason::none;  // why it was blocked last
    std::int64_t cause = -1;            // the span that ended that wait, else the last span
    std::int16_t table = -1;            // the function table that Scalar holds
    std::deque<ArrayWork> recent = {};  // Tensor's instructions in the last TensorSpec::ramp
    double recent_work = 0;
    std::vector<Loop> loops = {};
    std::vector<std::int64_t> registers = {};
    std::uint32_t track = 0;
    StreamTotals totals = {};
  };
  struct Semaphore {
    std::int64_t value = 0;
    std::int64_t cause = -1;  // the span that changed it last
    bool by_dma = false;
    std::vector<std::uint16_t> waiting = {};
    std::uint32_t counter = 0;
  };
  struct Flight {  // an instruction whose end is to come
    std::uint32_t instruction;
    std::int64_t span;
  };

  void prepare();
  void prepare_tracks();
  std::string label_of(const Instruction&) const;
  std::int16_t table_of(const BoundInstruction&) const;

  void issue(std::uint16_t stream);
  const SemaphoreWait* unmet(const Stream&, const Instruction&) const;
  Time start_of(Stream&, const Instruction&, const Prepared&, Time from, WaitReason& why);
  Time limited(Stream&, const Prepared&, Time start) const;
  void begin(std::uint16_t stream, std::uint32_t instruction, Time from);
  void trigger(std::uint16_t stream, std::uint32_t instruction, std::int64_t span);
  void control(Stream&, const BoundInstruction&);
  void compute(std::vector<std::int64_t>& registers, const BoundInstruction&);
  std::int32_t keep_registers(const Stream&, const Instruction&);
  std::int64_t note(Stream&, const Prepared&, Time start, Time end, WaitReason why);

  void finish_later(std::uint32_t instruction, std::int64_t span, Time when);
  void finish(std::uint32_t flight);
  void finish(const RingTransfer&);
  [[noreturn]] void fail_stuck() const;
  std::string stuck_sentence(std::size_t stream) const;

  const NeuronCoreProgram& program_;
  const ChipSpec& chip_;
  RunOptions options_;
  EventQueue<CoreEvent> queue_;
  DmaRings rings_;
  std::vector<Prepared> prepared_;
  std::vector<DmaWork> works_;
  std::vector<Stream> streams_;
  std::vector<Semaphore> semaphores_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_flights_;
  std::vector<std::vector<std::int64_t>> kept_;  // copies of registers that transfers in flight need
  std::vector<std::int32_t> free_kept_;
  std::vector<std::uint32_t> ring_tracks_;
  std::vector<Time> sbuf_port_, psum_port_;  // of each core: when it is free
  RunTotals totals_;
};

}  // namespace trellis::sim::core
