#include "ccl/plan/chunk_layout.h"

#include <algorithm>

namespace trellis::ccl {
namespace {

using schedule::Buffer;
using schedule::Collective;

// Chunks are aligned if they are at least so many alignments long: the last one is then hardly shorter than the others.
constexpr std::size_t worth_aligning = 16;

std::size_t index(Buffer b) { return static_cast<std::size_t>(b); }

}  // namespace

std::size_t largest_chunk(const schedule::Task& task, std::size_t block, std::size_t aligned) {
  const auto pieces = static_cast<std::size_t>(task.pieces);
  const std::size_t usual = (block + pieces - 1) / pieces;
  return usual >= worth_aligning * aligned ? (usual + aligned - 1) / aligned * aligned : usual;
}

bool divides(const schedule::Task& task, const BlockCounts& counts) {
  return !task.even || counts.block % static_cast<std::size_t>(task.pieces) == 0;
}

ChunkLayout::ChunkLayout(const schedule::Task& task, const schedule::Program& program, schedule::Rank rank,
                         const BlockCounts& counts, std::size_t aligned)
    : task_(task), counts_(counts), aligned_(aligned) {
  const schedule::Kinds kinds(task, rank, program);
  begins_[index(Buffer::input)] = begins(Buffer::input, schedule::input_chunks(task, rank), kinds);
  begins_[index(Buffer::output)] = begins(Buffer::output, schedule::output_chunks(task, rank), kinds);
  begins_[index(Buffer::scratch)] = begins(Buffer::scratch, program.scratch, kinds);
}

std::size_t ChunkLayout::piece(std::size_t block, std::int64_t i) const {
  const std::size_t usual = largest_chunk(task_, block, aligned_);
  return std::min(usual, block - std::min(block, usual * static_cast<std::size_t>(i)));
}

std::size_t ChunkLayout::size_of(std::int64_t kind) const {
  if (task_.even) return counts_.block / static_cast<std::size_t>(task_.pieces);
  if (!schedule::uneven(task_.operation.collective)) return piece(counts_.block, kind % task_.pieces);
  return piece(counts_.blocks.at(static_cast<std::size_t>(kind / task_.pieces)), kind % task_.pieces);
}

std::vector<std::size_t> ChunkLayout::begins(Buffer buffer, std::int64_t chunks, const schedule::Kinds& kinds) const {
  std::vector<std::size_t> all(1, 0);
  all.reserve(static_cast<std::size_t>(chunks) + 1);
  for (std::int64_t i = 0; i < chunks; ++i) all.push_back(all.back() + size_of(kinds.of(buffer, i)));
  return all;
}

std::size_t ChunkLayout::elements(Buffer b) const { return begins_[index(b)].back(); }

ChunkLayout::Run ChunkLayout::of(const schedule::Slice& slice) const {
  const std::vector<std::size_t>& begins = begins_[index(slice.buffer)];
  const std::size_t first = begins[static_cast<std::size_t>(slice.first)];
  const std::size_t end = begins[static_cast<std::size_t>(slice.first + slice.count)];
  return {first, end - first};
}

}  // namespace trellis::ccl
