// Kinds that gather and scatter: reads and writes at places given by data.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

constexpr std::int64_t core_partitions = 16;  // partitions that one of GpSimd's cores serves

// Returns an index below the limit. For others it throws, or returns -1 if they are to be skipped.
std::int64_t expect_index(const BoundInstruction& call, double index, std::int64_t limit) {
  if (index >= 0 && index < static_cast<double>(limit)) return static_cast<std::int64_t>(index);
  if (static_cast<OutOfBoundsPolicy>(call.number(Key::bounds)) == OutOfBoundsPolicy::skip) return -1;
  refuse(call, "index {} of {}", index, limit);
}

void expect_one_type(const BoundInstruction& call) {
  if (call.in().type != call.out().type)
    refuse(call, "data is {} and out {}; expected one type", name(call.in().type), name(call.out().type));
}

void check_local(const BoundInstruction& call) {
  const View &data = call.in(0), &index = call.in(1), &out = call.out();
  expect_one_type(call);
  if (index.type != DType::u16) refuse(call, "index is {}; expected u16", name(index.type));
  expect_rows(call, "index", index, data.rows);
  expect_rows(call, "out", out, data.rows);
  if (data.rows % core_partitions != 0)
    refuse(call, "data has {} rows; expected a multiple of {}", data.rows, core_partitions);
  const double each = call.number(Key::step, 1);
  if (each != 1 && each != 2 && each != 4 && each != 8 && each != 16 && each != 32)
    refuse(call, "step is {}; expected 1, 2, 4, 8, 16 or 32 elements an index", each);
  const double most = static_cast<double>(core_partitions * index.elements());
  const double count = call.number(Key::count, most);
  if (count > most || count < 1 || count > 4096)
    refuse(call, "count is {}; expected 1 to {} and at most 4096 indices", count, most);
  expect_elements(call, "out", out, static_cast<std::int64_t>(count * each));
}

// The documented cost: row.fixed + row.element n e / C cycles for n indices of e elements each, with C = ((28 + t e) /
// (t e)) / min(4 / bytes of an element, e); t is row.fast, 28 is row.faster.
double local_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  const double each = call.number(Key::step, 1);
  const double count = call.number(Key::count, static_cast<double>(core_partitions * call.in(1).elements()));
  const double scaled = row.fast * each;
  const double words = std::min(4.0 / static_cast<double>(kernels::size_of(call.in().type)), each);
  return row_cycles(call, row, chip, 0) + row.element * count * each / ((row.faster + scaled) / scaled / words);
}

void local(const BoundInstruction& call, CoreMemory& memory) {
  const View &data = call.in(0), &index = call.in(1);
  const auto columns = static_cast<std::size_t>(index.elements());
  const auto each = static_cast<std::size_t>(call.number(Key::step, 1));
  const auto count =
      static_cast<std::size_t>(call.number(Key::count, static_cast<double>(core_partitions * index.elements())));
  const std::size_t size = kernels::size_of(data.type);
  std::vector<double> row(columns), indices(columns * core_partitions);
  std::vector<std::byte> from(static_cast<std::size_t>(data.elements()) * size), to(count * each * size);
  for (std::int64_t first = 0; first < data.rows; first += core_partitions) {
    for (std::size_t p = 0; p < core_partitions; ++p) {  // index i is in partition i % 16
      memory.read(index, first + static_cast<std::int64_t>(p), row.data());
      for (std::size_t c = 0; c < columns; ++c) indices[c * core_partitions + p] = row[c];
    }
    for (std::int64_t r = first; r < first + core_partitions; ++r) {
      memory.read_bytes(data, r, from.data());
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t at = expect_index(call, indices[i], data.elements() - static_cast<std::int64_t>(each) + 1);
        if (at >= 0) std::memcpy(&to[i * each * size], &from[static_cast<std::size_t>(at) * size], each * size);
      }
      memory.write_bytes(call.out(), r, to.data());
    }
  }
}

void check_n(const BoundInstruction& call) {
  const View &data = call.in(0), &index = call.in(1);
  expect_one_type(call);
  if (index.type != DType::u32) refuse(call, "index is {}; expected u32", name(index.type));
  for (const View* v : {&data, &index}) expect_rows(call, "operand", *v, call.out().rows);
  expect_elements(call, "out", call.out(), index.elements());
}

void n_gather(const BoundInstruction& call, CoreMemory& memory) {
  const View &data = call.in(0), &index = call.in(1);
  const auto n = static_cast<std::size_t>(index.elements());
  const std::size_t size = kernels::size_of(data.type);
  std::vector<double> indices(n);
  std::vector<std::byte> from(static_cast<std::size_t>(data.elements()) * size), to(n * size);
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    memory.read(index, r, indices.data());
    memory.read_bytes(data, r, from.data());
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t at = expect_index(call, indices[i], data.elements());
      if (at >= 0) std::memcpy(&to[i * size], &from[static_cast<std::size_t>(at) * size], size);
    }
    memory.write_bytes(call.out(), r, to.data());
  }
}

const RegisteredInstruction on_gpsimd[] = {
    RegisteredInstruction({.name = "local_gather",
                           .summary = "out = step elements of data at each of count indices, that 16 partitions share",
                           .engines = {Engine::gpsimd},
                           .outputs = {{"out", false, in_sbuf}},
                           .inputs = {{"data", false, in_sbuf}, {"index", false, in_sbuf}},
                           .keys = {{Key::step}, {Key::count}},
                           .check = check_local,
                           .cycles = local_cycles,
                           .run = local}),
    RegisteredInstruction({.name = "nc_n_gather",
                           .summary = "out[i] = data[index[i]], each partition by itself",
                           .engines = {Engine::gpsimd},
                           .outputs = {{"out", false, in_sbuf}},
                           .inputs = {{"data", false, in_sbuf}, {"index", false, in_sbuf}},
                           .check = check_n,
                           .run = n_gather}),
};

// Checks the operands of a gather or scatter of one row of the table for each index. The table is the first input
// (gather) or the output (scatter).
void check_table(const BoundInstruction& call, const View& table, const View& rows, const View& index) {
  if (call.space(table) != MemorySpace::hbm) refuse(call, "the table lies on chip; expected HBM");
  if (index.type != DType::u32 && index.type != DType::i32)
    refuse(call, "index is {}; expected u32 or i32", name(index.type));
  expect_elements(call, "index", index, 1);
  expect_rows(call, "index", index, rows.rows);
  expect_elements(call, "table", table, rows.elements());
}

void check_gather(const BoundInstruction& call) { check_table(call, call.in(0), call.out(), call.in(1)); }
void check_scatter(const BoundInstruction& call) { check_table(call, call.out(), call.in(0), call.in(1)); }

// Copies rows, or with `adds` adds them to the output. Works in f32 if types differ or something is added.
void move_rows(const BoundInstruction& call, CoreMemory& memory, bool gathers, bool adds) {
  const View &table = gathers ? call.in(0) : call.out(), &index = call.in(1);
  const View& rows = gathers ? call.out() : call.in(0);
  InputRows from(memory, call.in(0)), before(memory, call.out());
  OutputRows to(call, memory, call.out());
  const bool bytes = !adds && call.in(0).type == call.out().type;
  std::vector<std::byte> row(static_cast<std::size_t>(rows.elements()) * kernels::size_of(call.in(0).type));
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    double number = 0;
    memory.read(index, r, &number);
    const std::int64_t at = expect_index(call, number, table.rows);
    if (at < 0) continue;
    const std::int64_t source = gathers ? at : r, target = gathers ? r : at;
    if (bytes) {
      memory.read_bytes(call.in(0), source, row.data());
      memory.write_bytes(call.out(), target, row.data());
    } else if (adds) {
      arithmetic(AluOp::add, {before.row(target)}, {from.row(source)}, to.row(), to.elements());
      to.store(target);
    } else {
      to.store(target, from.row(source));
    }
  }
}

template <bool gathers, bool adds>
void run_rows_moved(const BoundInstruction& call, CoreMemory& memory) {
  move_rows(call, memory, gathers, adds);
}

// A kind of DMA that GpSimd triggers, whose software writes the descriptors, one for each row.
template <bool gathers, bool adds>
InstructionKind indirect(std::string name, std::string summary) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .engines = {Engine::gpsimd},
          .outputs = {{gathers ? "out" : "table", false, in_sbuf | in_hbm}},
          .inputs = {{gathers ? "table" : "rows", false, in_sbuf | in_hbm}, {"index", false, in_sbuf}},
          .keys = with_rounding({{Key::bounds}}),
          .dma = true,
          .indirect = gathers ? IndirectOperand::source : IndirectOperand::target,
          .adds = adds,
          .check = gathers ? check_gather : check_scatter,
          .run = run_rows_moved<gathers, adds>};
}

const RegisteredInstruction by_dma[] = {
    RegisteredInstruction(indirect<true, false>("dma_gather", "row i of out = row index[i] of table")),
    RegisteredInstruction(indirect<false, false>("dma_scatter", "row index[i] of table = row i")),
    RegisteredInstruction(indirect<true, true>("dma_gather_add", "row i of out += row index[i] of table")),
    RegisteredInstruction(indirect<false, true>("dma_scatter_add", "row index[i] of table += row i")),
};

}  // namespace
}  // namespace trellis::sim::core
