#include "measure/settings.h"

#include <algorithm>
#include <cmath>

#include "ccl/plan/call_check.h"
#include "schedule/collective_traits.h"
#include "text/refuse.h"

namespace trellis::measure {
namespace {

using ccl::Call;
using ccl::Rank;
using schedule::Collective;

constexpr std::size_t nccl_block_bytes = 16;

// Elements of each block: the largest block has as many as every block of the even collectives.
std::vector<std::size_t> weighted(std::size_t block, const std::vector<double>& weights, Rank ranks) {
  if (weights.empty()) return std::vector<std::size_t>(static_cast<std::size_t>(ranks), block);
  if (weights.size() != static_cast<std::size_t>(ranks))
    text::refuse("counts for {} block{}: expected one for each of {} rank{}", weights.size(),
                 weights.size() == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s");
  std::vector<std::size_t> counts;
  for (const double w : weights) counts.push_back(static_cast<std::size_t>(std::floor(static_cast<double>(block) * w)));
  return counts;
}

std::vector<std::size_t> counts_sent(const BenchSettings& s, std::size_t block, std::size_t rank, Rank ranks) {
  if (s.weights.empty()) return weighted(block, {}, ranks);
  if (s.weights.size() == 1) return weighted(block, s.weights.front(), ranks);
  if (s.weights.size() != static_cast<std::size_t>(ranks))
    text::refuse("counts of {} senders: expected one row, or one for each of {} ranks", s.weights.size(), ranks);
  return weighted(block, s.weights[rank], ranks);
}

std::vector<schedule::Pair> pairs_for(const BenchSettings& s, Rank ranks) {
  if (!s.pairs.empty() || s.op.collective != Collective::permute) return s.pairs;
  std::vector<schedule::Pair> ring;
  for (Rank r = 0; r < ranks; ++r) ring.push_back({r, (r + 1) % ranks});
  return ring;
}

}  // namespace

std::vector<Call> calls_for(const BenchSettings& s, std::uint64_t bytes, kernels::DType type, kernels::Reduction op,
                            Rank root, Rank ranks) {
  const Collective collective = s.op.collective;
  const std::size_t size = size_of(type);
  std::size_t block = bytes / size;
  if (schedule::by_block(collective)) {
    block /= static_cast<std::size_t>(ranks);
    if (s.style == BenchStyle::nccl) block -= block % (nccl_block_bytes / size);
  }
  if (!schedule::carries_data(collective)) block = 0;
  Call call{.operation = {.collective = collective,
                          .root = root,
                          .peer = collective == Collective::send_recv ? (root + ranks - 1) % ranks : 0,
                          .pairs = pairs_for(s, ranks)},
            .count = block,
            .type = type,
            .op = {op, kernels::is_float(type) ? 0.5 : 2}};
  std::vector<Call> calls(static_cast<std::size_t>(ranks), call);
  if (!schedule::uneven(collective)) return calls;
  std::vector<std::vector<std::size_t>> sent;
  for (std::size_t r = 0; r < calls.size(); ++r) sent.push_back(counts_sent(s, block, r, ranks));
  for (std::size_t r = 0; r < calls.size(); ++r) {
    calls[r].counts = schedule::counts_by_pair(collective) ? sent[r] : sent.front();
    if (schedule::counts_by_pair(collective))
      for (const auto& from : sent) calls[r].arriving_counts.push_back(from[r]);
  }
  return calls;
}

std::uint64_t larger_buffer_bytes(const std::vector<Call>& calls) {
  std::uint64_t most = 0;
  for (std::size_t r = 0; r < calls.size(); ++r) {
    const ccl::BufferBytes e = ccl::extents_of(calls[r], static_cast<Rank>(r), static_cast<Rank>(calls.size()));
    most = std::max({most, std::uint64_t{e.input}, std::uint64_t{e.output}});
  }
  return most;
}

}  // namespace trellis::measure
