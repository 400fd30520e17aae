// Kinds for the largest values of a row and their indices, and the other row searches of GpSimd.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

constexpr std::size_t eight = 8;
constexpr std::int64_t longest = 16'384;  // elements of a row that Vector searches

void expect_searchable(const BoundInstruction& call, const View& data) {
  expect_rows(call, "data", data, call.out().rows);
  if (data.elements() < 8 || data.elements() > longest)
    refuse(call, "data has {} elements a row; expected 8 to {}", data.elements(), longest);
}

void expect_index(const BoundInstruction& call, std::string_view operand, const View& v) {
  expect_elements(call, operand, v, eight);
  if (v.type != DType::u16 && v.type != DType::u32)
    refuse(call, "{} is {}; expected u16 or u32", operand, name(v.type));
}

double data_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  return row_cycles(call, row, chip, call.in().elements());
}

void check_max8(const BoundInstruction& call) {
  expect_searchable(call, call.in());
  expect_elements(call, "out", call.out(), eight);
}

void max8(const BoundInstruction& call, CoreMemory& memory) {
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    const float* from = in.row(r);
    std::partial_sort_copy(from, from + in.elements(), out.row(), out.row() + eight, std::greater<>());
    out.store(r);
  }
}

const RegisteredInstruction max8_kind({.name = "max8",
                                       .summary = "out = the 8 largest of each row, descending",
                                       .engines = {Engine::vector},
                                       .outputs = {{"out"}},
                                       .inputs = {{"data"}},
                                       .keys = with_rounding(),
                                       .check = check_max8,
                                       .cycles = data_cycles,
                                       .run = max8});

// Returns for each of eight values the index in data where it is found first, or n. Equal values take successive
// indices, in the order given.
template <class Order>
std::array<std::size_t, eight> places(const float* data, std::size_t n, const float* values, Order order) {
  std::array<std::size_t, eight> found;
  found.fill(n);
  std::array<std::size_t, eight> next = {};
  for (const std::size_t v : order) {
    for (const std::size_t earlier : order) {
      if (earlier == v) break;
      if (values[earlier] == values[v]) next[v] = std::max(next[v], found[earlier] + 1);
    }
    for (std::size_t i = next[v]; i < n && found[v] == n; ++i)
      if (data[i] == values[v]) found[v] = i;
  }
  return found;
}

constexpr std::array<std::size_t, eight> upwards = {0, 1, 2, 3, 4, 5, 6, 7}, downwards = {7, 6, 5, 4, 3, 2, 1, 0};

// Indices of absent values have all bits set.
void write_places(CoreMemory& memory, const View& v, std::int64_t r, const std::array<std::size_t, eight>& found,
                  std::size_t n) {
  const double nowhere = v.type == DType::u16 ? 65535.0 : 4294967295.0;
  std::array<double, eight> row;
  for (std::size_t i = 0; i < eight; ++i) row[i] = found[i] == n ? nowhere : static_cast<double>(found[i]);
  memory.write(v, r, row.data());
}

void check_find(const BoundInstruction& call) {
  expect_searchable(call, call.in(0));
  expect_elements(call, "values", call.in(1), eight);
  expect_rows(call, "values", call.in(1), call.out().rows);
  expect_index(call, "out", call.out());
}

void find(const BoundInstruction& call, CoreMemory& memory) {
  InputRows data(memory, call.in(0)), values(memory, call.in(1));
  for (std::int64_t r = 0; r < call.out().rows; ++r)
    write_places(memory, call.out(), r, places(data.row(r), data.elements(), values.row(r), upwards), data.elements());
}

const RegisteredInstruction nc_find_index8(
    {.name = "nc_find_index8",
     .summary = "out = where in data each of 8 values stands first; all ones: nowhere",
     .engines = {Engine::vector},
     .outputs = {{"out"}},
     .inputs = {{"data"}, {"values"}},
     .check = check_find,
     .cycles = data_cycles,
     .run = find});

void check_replace(const BoundInstruction& call) {
  expect_searchable(call, call.in(0));
  expect_elements(call, "out", call.out(), call.in(0).elements());
  expect_elements(call, "values", call.in(1), eight);
  expect_rows(call, "values", call.in(1), call.out().rows);
  if (call.outputs.size() == 2) {
    expect_index(call, "places", call.out(1));
    expect_rows(call, "places", call.out(1), call.out().rows);
  }
}

void replace(const BoundInstruction& call, CoreMemory& memory) {
  InputRows data(memory, call.in(0)), values(memory, call.in(1));
  OutputRows out(call, memory, call.out());
  const auto with = static_cast<float>(call.number(Key::value));
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    const float* from = data.row(r);
    const auto found = places(from, data.elements(), values.row(r), downwards);
    std::copy_n(from, data.elements(), out.row());
    for (const std::size_t at : found)
      if (at < data.elements()) out.row()[at] = with;
    out.store(r);
    if (call.outputs.size() == 2) write_places(memory, call.out(1), r, found, data.elements());
  }
}

const RegisteredInstruction nc_match_replace8({.name = "nc_match_replace8",
                                               .summary = "out = data with value where each of 8 values stands first",
                                               .engines = {Engine::vector},
                                               .outputs = {{"out"}, {"places", true}},
                                               .inputs = {{"data"}, {"values"}},
                                               .keys = with_rounding({{Key::value, true}}),
                                               .check = check_replace,
                                               .cycles = data_cycles,
                                               .run = replace});

constexpr std::int64_t core_partitions = 16;  // partitions that one of GpSimd's cores serves

void check_topk(const BoundInstruction& call) {
  const View &src = call.in(), &values = call.out(0), &indices = call.out(1);
  const double n = call.number(Key::count);
  if (src.type != DType::bf16 || values.type != DType::bf16)
    refuse(call, "data is {} and values {}; expected bf16", name(src.type), name(values.type));
  if (indices.type != DType::u32) refuse(call, "indices are {}; expected u32", name(indices.type));
  if (src.rows % core_partitions != 0) refuse(call, "data has {} rows; expected a multiple of 16", src.rows);
  if (n < 8 || n >= 65536 || n > static_cast<double>(core_partitions * src.elements()))
    refuse(call, "count is {}; expected 8 to 65535 and at most 16 times data's {} elements a row", n, src.elements());
  if (static_cast<double>(values.elements()) > n)
    refuse(call, "values has {} elements a row; expected at most count, {}", values.elements(), n);
  expect_elements(call, "indices", indices, values.elements());
  for (const View& v : call.outputs) expect_rows(call, "out", v, src.rows);
}

double topk_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  return row_cycles(call, row, chip, static_cast<std::int64_t>(call.number(Key::count))) +
         static_cast<double>(call.out().elements());
}

// Returns the elements of 16 partitions, column by column.
std::vector<float> snake(CoreMemory& memory, const View& src, std::int64_t first, std::size_t n) {
  const auto columns = static_cast<std::size_t>(src.elements());
  std::vector<float> all(n), row(columns);
  for (std::size_t p = 0; p < core_partitions; ++p) {
    memory.read(src, first + static_cast<std::int64_t>(p), row.data());
    for (std::size_t c = 0; c * core_partitions + p < n; ++c) all[c * core_partitions + p] = row[c];
  }
  return all;
}

void topk(const BoundInstruction& call, CoreMemory& memory) {
  const auto n = static_cast<std::size_t>(call.number(Key::count));
  const auto k = static_cast<std::size_t>(call.out().elements());
  std::vector<std::size_t> order(n);
  std::vector<float> values(k);
  std::vector<double> indices(k);
  for (std::int64_t first = 0; first < call.in().rows; first += core_partitions) {
    const std::vector<float> all = snake(memory, call.in(), first, n);
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return all[a] > all[b]; });
    for (std::size_t i = 0; i < k; ++i) {
      values[k - 1 - i] = all[order[i]];
      indices[k - 1 - i] = static_cast<double>(order[i]);
    }
    for (std::int64_t r = first; r < first + core_partitions; ++r) {
      memory.write(call.out(0), r, values.data());
      memory.write(call.out(1), r, indices.data());
    }
  }
}

const RegisteredInstruction topk_kind(
    {.name = "topk",
     .summary = "values, indices = the largest of count elements in 16 partitions, ascending",
     .engines = {Engine::gpsimd},
     .outputs = {{"values", false, in_sbuf}, {"indices", false, in_sbuf}},
     .inputs = {{"data", false, in_sbuf}},
     .keys = {{Key::count, true}},
     .generation = 3,
     .check = check_topk,
     .cycles = topk_cycles,
     .run = topk});

void check_nonzero(const BoundInstruction& call) {
  const View &src = call.in(), &out = call.out();
  if (src.type != DType::f32 && src.type != DType::i32) refuse(call, "data is {}; expected f32 or i32", name(src.type));
  if (out.type != DType::i32) refuse(call, "out is {}; expected i32", name(out.type));
  expect_rows(call, "out", out, src.rows);
  expect_elements(call, "out", out, src.elements() + 1);
}

void nonzero(const BoundInstruction& call, CoreMemory& memory) {
  const View &src = call.in(), &out = call.out();
  const auto n = static_cast<std::size_t>(src.elements());
  std::vector<double> from(n), row(n + 1);
  for (std::int64_t r = 0; r < src.rows; r += core_partitions) {
    memory.read(src, r, from.data());
    std::fill(row.begin(), row.end(), call.number(Key::value, -1));
    std::size_t found = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (from[i] != 0) row[found++] = static_cast<double>(i) + call.number(Key::start);
    row[n] = static_cast<double>(found);
    memory.write(out, r, row.data());
  }
}

const RegisteredInstruction nonzero_with_count(
    {.name = "nonzero_with_count",
     .summary = "out = start + the places that are not 0, then value (-1), last how many; each 16th partition",
     .engines = {Engine::gpsimd},
     .outputs = {{"out", false, in_sbuf}},
     .inputs = {{"data", false, in_sbuf}},
     .keys = {{Key::start}, {Key::value}},
     .generation = 3,
     .check = check_nonzero,
     .run = nonzero});

void check_bounds(const BoundInstruction& call) {
  for (const View* v : {&call.in(), &call.out()}) {
    expect_rows(call, "operand", *v, 1);
    if (v->type != DType::f32 && v->type != DType::i32)
      refuse(call, "operand is {}; expected f32 or i32", name(v->type));
  }
  expect_elements(call, "out", call.out(), 2 * call.in().elements());
}

// Finds for each element the run of equal ids that it belongs to. Writes for all elements the index where the run
// begins, and then for all elements the index after its end. Id 0 is padding: its run begins at n and ends at -1.
void bounds(const BoundInstruction& call, CoreMemory& memory) {
  const auto n = static_cast<std::size_t>(call.in().elements());
  std::vector<double> ids(n), out(2 * n);
  memory.read(call.in(), 0, ids.data());
  for (std::size_t first = 0; first < n;) {
    std::size_t end = first;
    while (end < n && ids[end] == ids[first]) ++end;
    for (std::size_t i = first; i < end; ++i) {
      out[i] = ids[i] == 0 ? static_cast<double>(n) : static_cast<double>(first);
      out[n + i] = ids[i] == 0 ? -1 : static_cast<double>(end);
    }
    first = end;
  }
  memory.write(call.out(), 0, out.data());
}

const RegisteredInstruction sequence_bounds(
    {.name = "sequence_bounds",
     .summary = "out = for each element its segment's begin, then its end; 0 is padding",
     .engines = {Engine::gpsimd},
     .outputs = {{"out", false, in_sbuf}},
     .inputs = {{"ids", false, in_sbuf}},
     .check = check_bounds,
     .cycles = data_cycles,
     .run = bounds});

}  // namespace
}  // namespace trellis::sim::core
