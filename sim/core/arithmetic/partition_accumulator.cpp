#include "sim/core/arithmetic/partition_accumulator.h"

#include "sim/core/arithmetic/checks_and_costs.h"

namespace trellis::sim::core {

const View* result_of(const BoundInstruction& call) { return call.outputs.size() == 2 ? &call.out(1) : nullptr; }

PartitionAccumulator::PartitionAccumulator(const BoundInstruction& call, CoreMemory& memory, AluOp op,
                                           ReduceCommand otherwise)
    : call_(call),
      memory_(memory),
      result_(result_of(call)),
      command_(static_cast<ReduceCommand>(call.number(Key::reduce_command, static_cast<double>(otherwise)))),
      op_(reduction_of(call, Key::reduce, op)),
      negate_(call.number(Key::negate) != 0),
      load_(static_cast<float>(call.number(Key::value1))),
      lane_(static_cast<std::size_t>(call.buffer(call.out()).partition + call.out().row)) {}

float PartitionAccumulator::start(float kept) const {
  switch (command_) {
    case ReduceCommand::reduce:
      return kept;
    case ReduceCommand::load_reduce:
      return load_;
    default:
      return neutral(op_);
  }
}

float PartitionAccumulator::joined(float kept, const float* values, std::size_t n) const {
  if (op_ == AluOp::subtract && command_ == ReduceCommand::reset_reduce)
    return reduced(op_, values, n, memory_.sum_order());  // the first element less the others
  float state = start(kept);
  if (op_ == AluOp::subtract) {
    for (std::size_t i = 0; i < n; ++i) state -= values[i];
    return state;
  }
  const float value = reduced(op_, values, n, memory_.sum_order());
  float result = 0;
  arithmetic(op_, {&state}, {&value}, &result, 1);
  return result;
}

void PartitionAccumulator::row(std::int64_t row, const float* values, std::size_t n) {
  float& kept = memory_.state(call_.instruction).lanes[lane_ + static_cast<std::size_t>(row)].accumulator;
  if (command_ == ReduceCommand::reset)
    kept = neutral(op_);
  else if (command_ != ReduceCommand::idle)
    kept = joined(kept, values, n);
  if (result_ == nullptr) return;
  const float out = negate_ ? -kept : kept;
  memory_.write(*result_, row, &out);
}

std::vector<KeyRule> with_accumulator(std::vector<KeyRule> own) {
  for (const Key key : {Key::reduce, Key::reduce_command, Key::value1, Key::negate}) own.push_back({key});
  return own;
}

void check_accumulator(const BoundInstruction& call) {
  expect_reduction(call, Key::reduce);
  if (static_cast<ReduceCommand>(call.number(Key::reduce_command)) == ReduceCommand::load_reduce &&
      !call.has(Key::value1))
    refuse(call, "reduce_cmd is load_reduce; expected value1, what is loaded");
  if (const View* const result = result_of(call)) expect_column(call, "result", *result);
}

}  // namespace trellis::sim::core
