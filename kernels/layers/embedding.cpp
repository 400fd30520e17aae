#include "kernels/layers/embedding.h"

#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/dispatch/parallel.h"
#include "kernels/layers/rows.h"
#include "kernels/types/check_arguments.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

struct Sizes {
  std::size_t table, rows;  // elements
};

Sizes check(std::string_view kernel, const EmbeddingTable& t, std::size_t rows) {
  const Sizes sizes{check_table(kernel, t.type, t.entries, t.width), check_table(kernel, t.type, rows, t.width)};
  const auto here = static_cast<std::int64_t>(t.entries);
  if (t.entries > std::numeric_limits<std::int32_t>::max() || t.first < 0 ||
      t.first > (t.total == 0 ? here : t.total) - here)
    text::refuse("{}: entries {} to {} are not among {}", kernel, t.first, t.first + here,
                 t.total == 0 ? here : t.total);
  return sizes;
}

void check_ids(std::string_view kernel, const EmbeddingTable& t, const std::int32_t* ids, std::size_t rows,
               std::optional<std::int32_t> ignore) {
  const std::int64_t total = t.total == 0 ? static_cast<std::int64_t>(t.entries) : t.total;
  for (std::size_t r = 0; r < rows; ++r)
    if (ids[r] != ignore && (ids[r] < 0 || ids[r] >= total))
      text::refuse("{}: id {} of row {} is not below {}", kernel, ids[r], r, total);
}

// The row of this table that holds the id's entry; nothing if another shard has that entry.
std::optional<std::size_t> entry(const EmbeddingTable& t, std::int32_t id) {
  const std::int64_t at = id - t.first;
  if (at < 0 || at >= static_cast<std::int64_t>(t.entries)) return {};
  return static_cast<std::size_t>(at);
}

// The rows of each entry, rising: those of entry e are order[begin[e]] .. order[begin[e + 1]].
struct ByEntry {
  std::vector<std::size_t> begin, order;
};

ByEntry by_entry(const EmbeddingTable& t, const std::int32_t* ids, std::size_t rows, std::int32_t ignore) {
  ByEntry all{.begin = std::vector<std::size_t>(t.entries + 1), .order = {}};
  const auto counted = [&](std::size_t r) { return ids[r] == ignore ? std::nullopt : entry(t, ids[r]); };
  for (std::size_t r = 0; r < rows; ++r)
    if (const auto e = counted(r)) ++all.begin[*e + 1];
  for (std::size_t e = 0; e < t.entries; ++e) all.begin[e + 1] += all.begin[e];
  all.order.resize(all.begin.back());
  std::vector<std::size_t> next = all.begin;
  for (std::size_t r = 0; r < rows; ++r)
    if (const auto e = counted(r)) all.order[next[*e]++] = r;
  return all;
}

float value(DType type, const std::byte* at) {
  float f = 0;
  if (type == DType::f32) {
    std::memcpy(&f, at, sizeof f);
  } else {
    std::uint16_t code = 0;
    std::memcpy(&code, at, sizeof code);
    f = widen_bf16(code);
  }
  return f;
}

void add_row(DType type, const std::byte* row, std::vector<float>& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += value(type, row + i * size_of(type));
}

}  // namespace

void embedding(const EmbeddingTable& t, const void* table, const std::int32_t* ids, void* out, std::size_t rows,
               int threads) {
  const Sizes sizes = check("embedding", t, rows);
  check_threads("embedding", threads);
  const KernelOperand write{"out", out, sizes.rows * size_of(t.type)};
  const KernelOperand reads[] = {{"table", table, rows == 0 ? 0 : sizes.table * size_of(t.type)},
                                 array_of("embedding", "ids", ids, rows)};
  check_operands("embedding", {&write, 1}, reads, false);
  check_ids("embedding", t, ids, rows, {});
  const std::size_t bytes = t.width * size_of(t.type);
  parallel(threads, rows, [&](std::size_t from, std::size_t to) {
    for (std::size_t r = from; r < to; ++r) {
      std::byte* const place = static_cast<std::byte*>(out) + r * bytes;
      if (const auto e = entry(t, ids[r]))
        std::memcpy(place, static_cast<const std::byte*>(table) + *e * bytes, bytes);
      else
        std::memset(place, 0, bytes);
    }
  });
}

void embedding_gradient(const EmbeddingTable& t, const void* dy, const std::int32_t* ids, void* dtable,
                        std::size_t rows, const EmbeddingGradientOptions& o) {
  const Sizes sizes = check("embedding_gradient", t, rows);
  const std::size_t dy_elements = check_table("embedding_gradient", o.dy, rows, t.width);
  check_threads("embedding_gradient", o.threads);
  const KernelOperand write{"dtable", dtable, sizes.table * size_of(t.type)};
  const KernelOperand reads[] = {{"dy", dy, dy_elements * size_of(o.dy)},
                                 array_of("embedding_gradient", "ids", ids, rows)};
  check_operands("embedding_gradient", {&write, 1}, reads, false);
  check_ids("embedding_gradient", t, ids, rows, o.ignore);
  const ByEntry all = by_entry(t, ids, rows, o.ignore);
  const std::size_t bytes = t.width * size_of(t.type);
  parallel(o.threads, t.entries, [&](std::size_t from, std::size_t to) {
    std::vector<float> sums(t.width);
    for (std::size_t e = from; e < to; ++e) {
      std::byte* const place = static_cast<std::byte*>(dtable) + e * bytes;
      const bool none = all.begin[e] == all.begin[e + 1];
      if (none && !o.accumulate) std::memset(place, 0, bytes);
      if (none) continue;
      sums.assign(t.width, 0);
      if (o.accumulate) add_row(t.type, place, sums);
      for (std::size_t k = all.begin[e]; k < all.begin[e + 1]; ++k)
        add_row(o.dy, static_cast<const std::byte*>(dy) + all.order[k] * t.width * size_of(o.dy), sums);
      for (std::size_t i = 0; i < t.width; ++i) put_element(t.type, place, i, sums[i]);
    }
  });
}

}  // namespace trellis::kernels
