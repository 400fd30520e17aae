// Moves bytes between ranks. A lane is one direction between two ranks on one channel; its messages come out in the
// order in which they went in. Nothing here blocks but wait(): who has work calls advance() until it is done.
//
// A fabric with unordered delivery numbers its messages behind this; one with bounded credits makes no progress when it
// has none; one that registers memory does so in expose(), or for itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ccl/errors.h"
#include "ccl/exposed.h"

namespace trellis::ccl {

// Makes messages that do not lie in memory as they are sent, piece by piece: called in order, for all of a message.
struct Producer {
  void (*make)(void* context, std::uint32_t message, std::size_t offset, std::byte* piece, std::size_t bytes) = nullptr;
  void* context = nullptr;
};

// A message on its way out. Both ends must name the same size and mark; a difference is a Mismatch.
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

class Sender {
 public:
  virtual ~Sender() = default;
  virtual bool advance(Sending&) = 0;  // true once the data may be changed again
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual bool advance(Receiving&) = 0;  // true once all of it has been consumed
};

// What a rank is doing, for the others to see when something takes too long.
struct Activity {
  std::uint64_t operation = 0;  // how many were begun on this communicator
  std::uint64_t count = 0;
  std::uint64_t heartbeat = 0;  // counts on as long as the rank waits
  std::int32_t step = -1;
  Rank waits_for = -1;
  Rank root = 0;
  std::uint8_t collective = 0;
  std::uint8_t type = 0;
  std::uint8_t wire = 0;  // the type of messages
  std::uint8_t reduction = 0;
  bool running = false;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual Rank ranks() const = 0;
  virtual int lanes() const = 0;  // of each ordered pair; the last is for send and recv
  virtual std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) = 0;
  virtual bool readable(const void* data, std::size_t bytes) = 0;  // by peers, where it lies
  virtual Sender& sender(Rank to, int lane) = 0;
  virtual Receiver& receiver(Rank from, int lane) = 0;

  // Gives way to others, longer the longer nothing happened: `idle` counts the calls since something did. Wakes when a
  // message arrives or room appears. True when it has been long enough to look whether all are well.
  virtual bool wait(std::uint32_t idle) = 0;
  virtual bool could_advance() const = 0;  // one of the ends that wait; what a rank sent before it went is seen

  virtual void show(const Activity&) = 0;  // what this rank does
  virtual void rest() = 0;                 // it has done it
  virtual Activity activity(Rank) const = 0;
  virtual bool alive(Rank) = 0;      // false once its process is known to be gone
  virtual void mark_lost(Rank) = 0;  // tells everybody
  virtual Rank lost() const = 0;     // the first that was marked; -1: none
  virtual void mark_aborted() = 0;
  virtual bool aborted() const = 0;

  // Bytes of each rank to every one of `members`, which must all call it with the same round; works after failures too.
  using Note = std::array<std::byte, 192>;
  virtual std::vector<Note> exchange(std::span<const Rank> members, std::uint32_t round, const Note&, Deadline) = 0;

  virtual std::string_view name() const = 0;
  virtual std::size_t memory_bytes() const = 0;  // that this rank's part has in use
};

}  // namespace trellis::ccl
