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
#include "ccl/message.h"

namespace trellis::ccl {

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
  // How many of these bytes peers can read where they lie, in messages of so many.
  virtual std::size_t readable(const void* data, std::size_t bytes, std::size_t message) = 0;
  virtual Sender& sender(Rank to, int lane) = 0;
  virtual Receiver& receiver(Rank from, int lane) = 0;

  // Gives way to others, longer the longer nothing happened: `idle` counts the calls since something did. Wakes when a
  // message arrives or room appears. True when it has been long enough to look whether all are well.
  virtual bool wait(std::uint32_t idle) = 0;
  virtual bool could_advance() const = 0;  // one of the ends that wait; what a rank sent before it went is seen
  virtual Rank unread() const = 0;         // a rank whose message has come, and was not received yet; -1: none

  virtual void show(const Activity&) = 0;  // what this rank does
  virtual void rest() = 0;                 // it has done it
  virtual Activity activity(Rank) const = 0;
  virtual bool alive(Rank) = 0;       // false once it has left, or its process is known to be gone
  virtual bool left(Rank) const = 0;  // it has closed the communicator
  virtual void mark_lost(Rank) = 0;   // tells everybody
  virtual Rank lost() const = 0;      // the first that was marked; -1: none
  virtual void withdraw() = 0;        // what this rank offers where it lies, as it may be given back from now on
  virtual void mark_aborted() = 0;
  virtual bool aborted() const = 0;

  // Bytes of each rank to every one of `members`, which must all call it with the same round; works after failures too.
  using Note = std::array<std::byte, 192>;
  virtual std::vector<Note> exchange(std::span<const Rank> members, std::uint32_t round, const Note&, Deadline) = 0;

  virtual std::string_view name() const = 0;
  virtual std::uint64_t identity() const = 0;    // the same on all ranks, and no other communicator's
  virtual std::size_t memory_bytes() const = 0;  // that this rank's part has in use
};

}  // namespace trellis::ccl
