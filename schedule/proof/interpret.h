// Reference interpreter: runs a schedule in one thread over values of any type. Everything else is tested against it.
#pragma once
#include <functional>
#include <stdexcept>

#include "schedule/proof/dataflow.h"

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

// combine(sources) reduces several values to one, in the order given; recv_reduce puts the received value last. Throws
// invalid_argument if the schedule can't run to its end.
template <class Value, class Combine>
void interpret(const Schedule& s, const Wiring& wiring, Memory<Value>& memory, Combine combine) {
  std::vector<Cells> base;
  for (Rank r = 0; r < s.ranks(); ++r) base.push_back(cells(s.task, r));
  const auto cell = [&](Rank r, const Slice& x, std::int32_t i) -> Value& {
    return memory[r][base[r].at(x.buffer, std::int64_t{x.first} + i)];
  };
  std::vector<const Value*> sources;
  const auto local = [&](StepId id) {
    const Rank r = wiring.rank(id);
    const Program& program = s.programs[r];
    const Step& step = program.steps[wiring.step(id)];
    for (std::int32_t i = 0; i < step.to.count; ++i) {
      if (step.op == Op::copy) {
        cell(r, step.to, i) = cell(r, step.from, i);
        for (const Slice& also : program.further(step)) cell(r, also, i) = cell(r, step.from, i);
        continue;
      }
      sources.assign(1, &cell(r, step.from, i));
      for (const Slice& more : program.further(step)) sources.push_back(&cell(r, more, i));
      cell(r, step.to, i) = combine(std::span<const Value* const>(sources));
    }
  };
  const auto transfer = [&](StepId send, StepId receive) {
    const Rank a = wiring.rank(send), b = wiring.rank(receive);
    const Step& from = s.programs[a].steps[wiring.step(send)];
    const Step& to = s.programs[b].steps[wiring.step(receive)];
    for (std::int32_t i = 0; i < to.to.count; ++i) {
      const Value& arriving = cell(a, from.from, i);
      if (to.op == Op::recv) {
        cell(b, to.to, i) = arriving;
        continue;
      }
      sources.assign({&cell(b, to.from, i), &arriving});
      cell(b, to.to, i) = combine(std::span<const Value* const>(sources));
    }
  };
  if (!Dataflow(s, wiring).run(local, transfer))
    throw std::invalid_argument("some step of the schedule can never start");
}

template <class Value, class Combine>
void interpret(const Schedule& s, Memory<Value>& memory, Combine combine) {
  Wiring wiring;
  if (const auto fault = Wiring::connect(s, wiring)) throw std::invalid_argument(fault->text);
  interpret(s, wiring, memory, combine);
}

}  // namespace trellis::schedule
