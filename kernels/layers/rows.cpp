#include "kernels/layers/rows.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>
#include <utility>

#include "kernels/dispatch/parallel.h"
#include "kernels/types/arguments.h"
#include "kernels/types/convert.h"

namespace trellis::kernels {
namespace {

// Filled by the constants of type RegisteredRows, before main; only read afterwards.
std::map<std::string, RowKernel, std::less<>>& known() {
  static std::map<std::string, RowKernel, std::less<>> map;
  return map;
}

constexpr std::size_t columns_of_a_part = 64;

}  // namespace

RowBody RowKernel::chosen() const {
  for (auto i = static_cast<std::size_t>(cpu().best) + 1; i-- > 0;)
    if (twins[i] != nullptr) return twins[i];
  return truth;
}

std::string_view RowKernel::chosen_name() const {
  for (auto i = static_cast<std::size_t>(cpu().best) + 1; i-- > 0;)
    if (twins[i] != nullptr) return kernels::name(static_cast<Isa>(i));
  return "truth";
}

RegisteredRows::RegisteredRows(std::vector<RowKernel> (*make)()) {
  for (RowKernel& kernel : make()) {
    RowKernel& entry = known()[kernel.name];
    kernel.twins = entry.twins;  // which may have come first
    entry = std::move(kernel);
  }
}

RegisteredRows::RegisteredRows(Isa isa, const RowTwin* twins, std::size_t count) {
  for (const RowTwin* twin = twins; twin != twins + count; ++twin)
    known()[twin->name.text].twins[static_cast<std::size_t>(isa)] = twin->body;
}

const std::map<std::string, RowKernel, std::less<>>& row_kernels() { return known(); }

void run_rows(std::string_view name, const Rows& whole, int threads) {
  const auto found = known().find(name);
  if (found == known().end()) throw std::invalid_argument(fmt::format("no kernel over rows is called '{}'", name));
  const RowBody body = found->second.chosen();
  const std::size_t unit = found->second.by_columns ? columns_of_a_part : 1;
  const std::size_t length = found->second.by_columns ? whole.columns : whole.rows;
  parallel(threads, length / unit + (length % unit != 0), [&](std::size_t from, std::size_t to) {
    Rows share = whole;
    share.from = from * unit;
    share.to = to * unit < length ? to * unit : length;
    body(share);
  });
}

std::size_t check_table(std::string_view kernel, DType type, std::size_t rows, std::size_t columns) {
  if (type != DType::f32 && type != DType::bf16)
    throw std::invalid_argument(fmt::format("{}: {} is not supported; f32 and bf16 are", kernel, name(type)));
  if (rows != 0 && columns == 0) throw std::invalid_argument(fmt::format("{}: {} rows of 0 columns", kernel, rows));
  if (columns != 0 && rows > std::numeric_limits<std::size_t>::max() / columns)
    throw std::invalid_argument(
        fmt::format("{}: {} rows of {} columns are more than memory can hold", kernel, rows, columns));
  bytes_of(kernel, rows * columns, size_of(type));
  return rows * columns;
}

float element(DType type, const void* array, std::size_t i) {
  return static_cast<float>(load(type, static_cast<const std::byte*>(array) + i * size_of(type)));
}

void put_element(DType type, void* array, std::size_t i, float value) {
  if (value != value) value = std::numeric_limits<float>::quiet_NaN();
  store(type, static_cast<std::byte*>(array) + i * size_of(type), static_cast<double>(value));
}

}  // namespace trellis::kernels
