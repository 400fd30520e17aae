// Places of the whole machine. An algorithm moves data from one place to another.
#pragma once
#include <cstdint>

#include "schedule/collective.h"

namespace trellis::schedule {

// `data` numbers the chunks of the larger buffer, wherever each one lies; the other regions are the buffers themselves.
enum class Region : std::uint8_t { data, input, output, scratch };

struct ChunkPlace {
  Rank rank = 0;
  Region region = Region::data;
  std::int64_t first = 0;
  std::int64_t count = 1;
  // Scratch: the data chunk that gives the first chunk its size; negative: the data chunk of the same number.
  std::int64_t like = -1;
};

// Places by buffer: `count` chunks starting at `first`.
constexpr ChunkPlace data(Rank r, std::int64_t first, std::int64_t count = 1) {
  return {r, Region::data, first, count};
}
constexpr ChunkPlace in(Rank r, std::int64_t first, std::int64_t count = 1) { return {r, Region::input, first, count}; }
constexpr ChunkPlace out(Rank r, std::int64_t first, std::int64_t count = 1) {
  return {r, Region::output, first, count};
}

// Scratch as large as the data chunks from `like` on; if negative, as the data chunks of the same numbers.
constexpr ChunkPlace tmp(Rank r, std::int64_t first, std::int64_t count = 1, std::int64_t like = -1) {
  return {r, Region::scratch, first, count, like};
}

}  // namespace trellis::schedule
