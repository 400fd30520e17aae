#include "measure/data_pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ccl/plan/chunk_layout.h"
#include "ccl/plan/planner.h"
#include "kernels/reduce/divide.h"
#include "kernels/types/convert.h"
#include "schedule/collective.h"
#include "text/refuse.h"

namespace trellis::measure {
namespace {

using ccl::Rank;
using kernels::Reduction;
using schedule::Buffer;

// Period of the data in elements: a prime, so that data misplaced by a chunk or a page is noticed.
constexpr std::size_t period = 4093;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = (a ^ b * 0x9E37'79B9'7F4A'7C15) * 0xBF58'476D'1CE4'E5B9;
  h = (h ^ h >> 29) * 0x94D0'49BB'1331'11EB;
  return h ^ h >> 32;
}

// The contributors to an element, and their contributions.
struct Pair {
  Rank a, b;  // a == b: only one contributor
  int x, y;
};

Pair pair_at(std::uint64_t seed, std::size_t index, Rank ranks) {
  const std::uint64_t h = mixed(seed, index);
  const auto a = static_cast<Rank>(h % static_cast<std::uint64_t>(ranks));
  const Rank others = ranks - 1;
  const Rank b = others == 0 ? a : (a + 1 + static_cast<Rank>((h >> 20) % static_cast<std::uint64_t>(others))) % ranks;
  return {a, b, 1 + static_cast<int>((h >> 40) % 3), 1 + static_cast<int>((h >> 50) % 2)};
}

double neutral(Reduction op) { return op == Reduction::prod ? 1 : op == Reduction::min ? 7 : 0; }

double joined(Reduction op, double x, double y) {
  switch (op) {
    case Reduction::prod:
      return x * y;
    case Reduction::min:
      return std::min(x, y);
    case Reduction::max:
      return std::max(x, y);
    default:
      return x + y;
  }
}

}  // namespace

// Throws where a sum of ones could be rounded, in whatever order it is done.
void check_ones(const ccl::Call& call, Rank ranks) {
  const Reduction op = call.op.kind;
  const bool sums = op == Reduction::sum || op == Reduction::avg || op == Reduction::scaled_sum;
  if (!schedule::reduces(call.operation.collective) || !sums || !is_float(call.type)) return;
  const double factor = op == Reduction::scaled_sum ? call.op.factor : 1;
  for (Rank r = 1; r <= ranks; ++r) {
    std::array<std::byte, 8> kept = {};
    kernels::store(call.type, kept.data(), factor * r);
    if (kernels::load(call.type, kept.data()) != factor * r)
      text::refuse("a sum of {} ones is rounded in {}: expected {} ranks at most, or --check 1, whose sums are exact",
                   r, name(call.type), r - 1);
  }
}

DataPattern::DataPattern(std::span<const ccl::Call> calls, Rank rank, std::uint64_t seed, bool ones)
    : call_(calls[static_cast<std::size_t>(rank)]),
      rank_(rank),
      ranks_(static_cast<Rank>(calls.size())),
      seed_(seed),
      ones_(ones) {
  if (ones) check_ones(call_, ranks_);
  const schedule::Task task{.operation = ccl::operation_of(call_, false), .ranks = ranks_};
  const ccl::BlockCounts counts = ccl::counts_of(call_, rank, ranks_);
  const schedule::Program program;
  const ccl::ChunkLayout layout(task, program, rank, counts, 1);
  const auto part = [&](Buffer buffer, std::int64_t chunk, std::int64_t like, Rank source) {
    const auto run = layout.of({static_cast<std::int32_t>(chunk), 1, buffer});
    return Part{run.first, run.elements, static_cast<std::size_t>(like) * 389 % period, source};
  };
  for (std::int64_t i = 0; i < schedule::input_chunks(task, rank); ++i)
    inputs_.push_back(part(Buffer::input, i, i, rank));
  for (std::int64_t i = 0; i < schedule::output_chunks(task, rank); ++i) {
    const schedule::Wanted w = schedule::wanted(task, rank, i);
    if (w.form == schedule::Wanted::Form::copy) outputs_.push_back(part(Buffer::output, i, w.chunk, w.source));
    if (w.form == schedule::Wanted::Form::sum) outputs_.push_back(part(Buffer::output, i, w.chunk, everybody));
  }
}

double DataPattern::value(Rank source, std::size_t index) const {
  if (ones_) return 1;
  if (!schedule::reduces(call_.operation.collective))
    return static_cast<double>(mixed(seed_ + static_cast<std::uint64_t>(source) + 1, index) % 16);
  const Pair p = pair_at(seed_, index, ranks_);
  return source == p.a ? p.x : source == p.b ? p.y : neutral(call_.op.kind);
}

double DataPattern::total(std::size_t index) const {
  const Reduction op = call_.op.kind;
  const double factor = op == Reduction::scaled_sum ? call_.op.factor : 1;
  if (ones_) return op == Reduction::prod || op == Reduction::min || op == Reduction::max ? 1 : factor * ranks_;
  const Pair p = pair_at(seed_, index, ranks_);
  return factor * (p.a == p.b ? p.x : joined(op, p.x, p.y));
}

const DataPattern::Tile& DataPattern::tile(Rank source) {
  Tile& t = tiles_[source];
  if (!t.empty()) return t;
  const std::size_t size = size_of(call_.type);
  t.resize(period * size);
  for (std::size_t i = 0; i < period; ++i)
    kernels::store(call_.type, t.data() + i * size, source == everybody ? total(i) : value(source, i));
  if (source == everybody && call_.op.kind == Reduction::avg)
    kernels::divide(call_.type, t.data(), period, static_cast<std::uint32_t>(ranks_));
  return t;
}

void DataPattern::fill(void* input) {
  const std::size_t size = size_of(call_.type);
  auto* const bytes = static_cast<std::byte*>(input);
  for (const Part& p : inputs_) {
    const Tile& t = tile(p.source);
    for (std::size_t done = 0, at = p.phase; done < p.elements; at = 0) {
      const std::size_t n = std::min(period - at, p.elements - done);
      std::memcpy(bytes + (p.first + done) * size, t.data() + at * size, n * size);
      done += n;
    }
  }
}

std::uint64_t DataPattern::wrong(const void* output) {
  const std::size_t size = size_of(call_.type);
  const auto* const bytes = static_cast<const std::byte*>(output);
  std::uint64_t count = 0;
  for (const Part& p : outputs_) {
    const Tile& t = tile(p.source);
    for (std::size_t done = 0, at = p.phase; done < p.elements; at = 0) {
      const std::size_t n = std::min(period - at, p.elements - done);
      const std::byte *is = bytes + (p.first + done) * size, *must = t.data() + at * size;
      if (std::memcmp(is, must, n * size) != 0)
        for (std::size_t i = 0; i < n; ++i) count += std::memcmp(is + i * size, must + i * size, size) != 0 ? 1U : 0U;
      done += n;
    }
  }
  return count;
}

void look_through(const void* data, std::size_t bytes) {
  constexpr std::size_t line = 64;
  const auto* const at = static_cast<const volatile std::byte*>(data);
  for (std::size_t i = 0; i < bytes; i += line) static_cast<void>(at[i]);
}

}  // namespace trellis::measure
