#include "ccl/call.h"

#include <numeric>

#include "text/refuse.h"

namespace trellis::ccl {

void expect_blocks(Collective collective, std::string_view larger, std::size_t whole, std::size_t block, Rank ranks) {
  if (block * static_cast<std::size_t>(ranks) != whole)
    text::refuse("{}: {} elements in the {}; expected {} for each of {} ranks", schedule::name(collective), whole,
                 larger, block, ranks);
}

std::size_t block_of(Collective collective, std::size_t whole, Rank ranks) {
  const std::size_t block = whole / static_cast<std::size_t>(ranks);
  expect_blocks(collective, "output", whole, block, ranks);
  return block;
}

void expect_as_many(Collective collective, std::size_t in, std::size_t out) {
  if (in != out)
    text::refuse("{}: {} elements in the input and {} in the output; expected as many", schedule::name(collective), in,
                 out);
}

void expect_counts(Collective collective, std::string_view buffer, std::span<const std::size_t> counts,
                   std::size_t elements, Rank ranks) {
  if (counts.size() != static_cast<std::size_t>(ranks))
    text::refuse("{}: {} counts; expected one for each of {} ranks", schedule::name(collective), counts.size(), ranks);
  const std::size_t sum = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  if (sum != elements)
    text::refuse("{}: {} elements in the {}; expected the {} of its counts", schedule::name(collective), elements,
                 buffer, sum);
}

void expect_own(Collective collective, std::span<const std::size_t> counts, Rank rank, std::size_t smaller,
                std::size_t larger, Rank ranks) {
  expect_counts(collective, "larger buffer", counts, larger, ranks);
  if (const std::size_t own = counts[static_cast<std::size_t>(rank)]; own != smaller)
    text::refuse("{}: {} elements in the smaller buffer; expected {}, the count of rank {}", schedule::name(collective),
                 smaller, own, rank);
}

}  // namespace trellis::ccl
