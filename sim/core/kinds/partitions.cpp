// Kinds that cross partitions without the Tensor engine: shuffles within 32, reductions and broadcasts over all.
#include <vector>

#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

constexpr std::int32_t quadrant = 32;
constexpr double keep = 255;  // in a mask: the partition stays unchanged

// Here the mask is an operand, 32 integers; on the hardware the compiler encodes it in the instruction.
void check_shuffle(const BoundInstruction& call) {
  const View &in = call.in(0), &out = call.out();
  if (in.type != out.type) refuse(call, "source is {} and out {}; expected one type", name(in.type), name(out.type));
  expect_elements(call, "out", out, in.elements());
  expect_rows(call, "out", out, in.rows);
  expect_rows(call, "mask", call.in(1), 1);
  expect_elements(call, "mask", call.in(1), quadrant);
  if (kernels::is_float(call.in(1).type)) refuse(call, "mask is {}; expected an integer type", name(call.in(1).type));
}

double shuffle_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  return row_cycles(call, row, chip, call.in().elements());
}

void shuffle(const BoundInstruction& call, CoreMemory& memory) {
  const View &in = call.in(0), &out = call.out();
  const auto bytes = static_cast<std::size_t>(in.elements()) * kernels::size_of(in.type);
  std::vector<std::byte> all(bytes * static_cast<std::size_t>(in.rows));
  for (std::int64_t r = 0; r < in.rows; ++r) memory.read_bytes(in, r, all.data() + static_cast<std::size_t>(r) * bytes);
  std::array<double, quadrant> mask;
  memory.read(call.in(1), 0, mask.data());
  for (std::int32_t r = 0; r < out.rows; ++r) {
    const double from = mask[static_cast<std::size_t>(r % quadrant)];
    if (from == keep) continue;
    const std::int32_t row = r / quadrant * quadrant + static_cast<std::int32_t>(from);
    if (from < 0 || from >= quadrant || row >= in.rows)
      refuse(call, "mask {} for row {}; expected 255 or a row of its quadrant below {}", from, r, in.rows);
    memory.write_bytes(out, r, all.data() + static_cast<std::size_t>(row) * bytes);
  }
}

const RegisteredInstruction nc_stream_shuffle(
    {.name = "nc_stream_shuffle",
     .summary = "row i of out = row mask[i] of source, within each 32 partitions; 255: as it was",
     .engines = {Engine::vector},
     .outputs = {{"out"}},
     .inputs = {{"source"}, {"mask", false, in_sbuf}},
     .check = check_shuffle,
     .cycles = shuffle_cycles,
     .run = shuffle});

void check_reduce(const BoundInstruction& call) {
  const AluOp op = call.alu();
  if (op != AluOp::add && op != AluOp::average && op != AluOp::max && op != AluOp::bitwise_or &&
      op != AluOp::bitwise_and)
    refuse(call, "op is {}; expected add, average, max, bitwise_or or bitwise_and", name(op));
  if (is_bitwise(op) && (kernels::is_float(call.in().type) || call.in().type != call.out().type))
    refuse(call, "op is {}, which is of bits: expected integers of one type", name(op));
  expect_rows(call, "out", call.out(), 1);
  expect_elements(call, "out", call.out(), call.in().elements());
}

void reduce_bits(const BoundInstruction& call, CoreMemory& memory) {
  BitRows in(memory, call.in()), out(memory, call.out());
  std::vector<std::uint64_t> state(in.row(0), in.row(0) + in.elements()), next(state.size());
  for (std::int64_t r = 1; r < call.in().rows; ++r) {
    bitwise(call.alu(), {state.data()}, {in.row(r)}, in.bits(), next.data(), next.size());
    state.swap(next);
  }
  out.store(0, state.data());
}

// Combines the rows of all partitions, in order, into one; average divides their sum at the end.
void reduce(const BoundInstruction& call, CoreMemory& memory) {
  const AluOp op = call.alu();
  if (is_bitwise(op)) return reduce_bits(call, memory);
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  const std::size_t n = out.elements();
  std::vector<float> state(in.row(0), in.row(0) + n), next(n);
  for (std::int64_t r = 1; r < call.in().rows; ++r) {
    arithmetic(op == AluOp::average ? AluOp::add : op, {state.data()}, {in.row(r)}, next.data(), n);
    state.swap(next);
  }
  const float count = op == AluOp::average ? static_cast<float>(call.in().rows) : 1;
  arithmetic(AluOp::divide, {state.data()}, {&count, true}, out.row(), n);
  out.store(0);
}

const RegisteredInstruction tensor_partition_reduce({.name = "tensor_partition_reduce",
                                                     .summary = "out = all rows of data reduced to one",
                                                     .engines = {Engine::gpsimd},
                                                     .outputs = {{"out", false, in_sbuf}},
                                                     .inputs = {{"data", false, in_sbuf}},
                                                     .keys = with_rounding({{Key::op, true}}),
                                                     .check = check_reduce,
                                                     .run = reduce});

void check_broadcast(const BoundInstruction& call) {
  expect_rows(call, "source", call.in(), 1);
  expect_elements(call, "out", call.out(), call.in().elements());
}

void broadcast(const BoundInstruction& call, CoreMemory& memory) {
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  const std::vector<float> row(in.row(0), in.row(0) + in.elements());
  for (std::int64_t r = 0; r < call.out().rows; ++r) out.store(r, row.data());
}

const RegisteredInstruction partition_broadcast({.name = "partition_broadcast",
                                                 .summary = "every row of out = the one row of source",
                                                 .engines = {Engine::gpsimd},
                                                 .outputs = {{"out", false, in_sbuf}},
                                                 .inputs = {{"source", false, in_sbuf}},
                                                 .keys = with_rounding(),
                                                 .check = check_broadcast,
                                                 .run = broadcast});

}  // namespace
}  // namespace trellis::sim::core
