// Reference interpreter: runs a schedule in one thread over values of any type. Everything else is tested against it.
#pragma once
#include <functional>
#include <stdexcept>

#include "schedule/proof/step_wiring.h"

namespace trellis::schedule {

// Each rank's values by cell (see cells()). Scratch comes last.
template <class Value>
using Memory = std::vector<std::vector<Value>>;

// Allocates every rank's cells and fills the input with input(rank, chunk).
template <class Value, class Input>
Memory<Value> memory_of(const Schedule& s, Input input) {
  Memory<Value> memory(s.programs.size());
  for (Rank r = 0; r < s.ranks(); ++r) {
    const Cells c = cells(s.task, r);
    memory[r].resize(c.scratch + s.programs[r].scratch);
    for (std::int64_t i = 0; i < input_chunks(s.task, r); ++i) memory[r][c.at(Buffer::input, i)] = input(r, i);
  }
  return memory;
}

// A schedule's memory, by slices of the ranks' chunks.
template <class Value>
class ScheduleMemoryView {
 public:
  ScheduleMemoryView(const Schedule& s, const StepWiring& wiring, Memory<Value>& memory)
      : schedule_(s), wiring_(wiring), memory_(memory) {
    for (Rank r = 0; r < s.ranks(); ++r) base_.push_back(cells(s.task, r));
  }
  Value& cell(Rank r, const Slice& x, std::int32_t i) const {
    return memory_[r][base_[r].at(x.buffer, std::int64_t{x.first} + i)];
  }
  const Step& step(StepId id) const { return schedule_.programs[wiring_.rank(id)].steps[wiring_.step(id)]; }
  std::span<const Slice> further(StepId id) const { return schedule_.programs[wiring_.rank(id)].further(step(id)); }

 private:
  const Schedule& schedule_;
  const StepWiring& wiring_;
  Memory<Value>& memory_;
  std::vector<Cells> base_;
};

struct NoObserver {
  void operator()(StepId, StepId) const {}
};

// combine(sources) reduces several values to one, in the order given; recv_reduce puts the received value last.
// before(step, receive) and after(step, receive) are called around each local step, with StepWiring::none as `receive`,
// and around each arrival, with its two ends. Throws invalid_argument if the schedule can't run to its end.
template <class Value, class Combine, class Before = NoObserver, class After = NoObserver>
void interpret(const Schedule& s, const StepWiring& wiring, Memory<Value>& memory, Combine combine, Before before = {},
               After after = {}) {
  const ScheduleMemoryView<Value> view(s, wiring, memory);
  std::vector<const Value*> sources;
  const auto local = [&](StepId id) {
    before(id, StepWiring::none);
    const Rank r = wiring.rank(id);
    const Step& step = view.step(id);
    for (std::int32_t i = 0; i < step.to.count; ++i) {
      if (step.op == Op::copy) {
        view.cell(r, step.to, i) = view.cell(r, step.from, i);
        for (const Slice& also : view.further(id)) view.cell(r, also, i) = view.cell(r, step.from, i);
        continue;
      }
      sources.assign(1, &view.cell(r, step.from, i));
      for (const Slice& more : view.further(id)) sources.push_back(&view.cell(r, more, i));
      view.cell(r, step.to, i) = combine(std::span<const Value* const>(sources));
    }
    after(id, StepWiring::none);
  };
  const auto transfer = [&](StepId send, StepId receive) {
    before(send, receive);
    const Rank a = wiring.rank(send), b = wiring.rank(receive);
    const Step& from = view.step(send);
    const Step& to = view.step(receive);
    for (std::int32_t i = 0; i < to.to.count; ++i) {
      const Value& arriving = view.cell(a, from.from, i);
      if (to.op == Op::recv) {
        view.cell(b, to.to, i) = arriving;
        continue;
      }
      sources.assign({&view.cell(b, to.from, i), &arriving});
      view.cell(b, to.to, i) = combine(std::span<const Value* const>(sources));
    }
    after(send, receive);
  };
  if (!DataflowExecutor(s, wiring).run(local, transfer))
    throw std::invalid_argument("some step of the schedule can never start");
}

template <class Value, class Combine>
void interpret(const Schedule& s, Memory<Value>& memory, Combine combine) {
  StepWiring wiring;
  if (const auto fault = StepWiring::connect(s, wiring)) throw std::invalid_argument(fault->text);
  interpret(s, wiring, memory, combine);
}

}  // namespace trellis::schedule
