// Messages in progress, as their two ends describe them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ccl/errors.h"

namespace trellis::ccl {

// Produces messages that are not in memory in the form that is sent. Called piece by piece, in order, for the whole
// message.
struct Producer {
  void (*make)(void* context, std::uint32_t message, std::size_t offset, std::byte* piece, std::size_t bytes) = nullptr;
  void* context = nullptr;
};

// An outgoing message. Both ends must give the same size and mark; otherwise it is a MessageMismatch.
struct Sending {
  const std::byte* data = nullptr;
  const Producer* producer = nullptr;  // of this message; null: the data are sent from memory
  std::size_t bytes = 0;
  std::uint32_t mark = 0;
  std::uint32_t message = 0;  // the producer's own number for it
  std::size_t done = 0;       // bytes sent; used by the transport
  std::uint32_t ticket = 0;   // of data offered in place; used by the transport
  bool offered = false;
};

// Processes the pieces of a message as they arrive, in order, for the whole message.
struct Consumer {
  void (*take)(void* context, std::uint32_t message, std::size_t offset, const std::byte* piece,
               std::size_t bytes) = nullptr;
  void* context = nullptr;
  std::uint32_t message = 0;  // the consumer's own number for it
};

struct Receiving {
  Consumer consumer = {};
  std::byte* place = nullptr;  // destination of the message if it is stored unchanged; null: the consumer processes it
  std::size_t bytes = 0;
  std::uint32_t mark = 0;
  int looks = 1;  // number of polls before the message counts as not arrived
  std::size_t done = 0;
};

// A message differs from the expected one.
struct MessageMismatch {
  Rank sender;
  std::size_t bytes, due;  // bytes that arrived; bytes that the receiver expects
  bool whole;              // nothing more will arrive
  std::uint32_t mark, mark_due;
  bool in_round = false;  // an all-to-all message: its mark depends on all earlier calls, too
};

// A message that arrived is not what was sent.
struct MessageDamaged {
  Rank sender;  // -1: it can't be told
};

// A message can no longer be read, because its sender's operation failed.
struct MessageWithdrawn {
  Rank sender;
};

}  // namespace trellis::ccl
