// Messages under way, as their two ends know them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ccl/errors.h"

namespace trellis::ccl {

// Makes messages that do not lie in memory as they are sent, piece by piece: called in order, for all of a message.
struct Producer {
  void (*make)(void* context, std::uint32_t message, std::size_t offset, std::byte* piece, std::size_t bytes) = nullptr;
  void* context = nullptr;
};

// A message on its way out. Both ends must name the same size and mark; else it is a Misfit.
struct Sending {
  const std::byte* data = nullptr;
  const Producer* producer = nullptr;  // of this message; null: the data are sent as they lie
  std::size_t bytes = 0;
  std::uint32_t mark = 0;
  std::uint32_t message = 0;  // the producer's own number for it
  std::size_t done = 0;       // bytes that have left; the transport's own
  std::uint32_t ticket = 0;   // of what was offered where it lies; the same
  bool offered = false;
};

// What becomes of a piece that has arrived: called in order, for all of the message.
struct Consumer {
  void (*take)(void* context, std::uint32_t message, std::size_t offset, const std::byte* piece,
               std::size_t bytes) = nullptr;
  void* context = nullptr;
  std::uint32_t message = 0;  // the consumer's own number for it
};

struct Receiving {
  Consumer consumer = {};
  std::byte* place = nullptr;  // where the message is wanted as it is, or null when the consumer works on it
  std::size_t bytes = 0;
  std::uint32_t mark = 0;
  int looks = 1;  // times to look for it before saying that it has not come
  std::size_t done = 0;
};

// A message is not the one that is due.
struct Misfit {
  Rank sender;
  std::size_t bytes, due;  // that have come of it; of the whole
  bool whole;              // these are all
  std::uint32_t mark, mark_due;
};

// A message can't be read any more: the operation of its sender failed.
struct Withdrawn {
  Rank sender;
};

}  // namespace trellis::ccl
