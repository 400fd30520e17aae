// Transport interface: moves bytes between ranks. A lane is one direction between two ranks on one channel; its
// messages arrive in the order in which they were sent. Only wait() and wait_for_posts() block; callers call advance()
// until it is done.
//
// Fabrics fit behind this interface: one with unordered delivery numbers its messages; one with limited credits makes
// no progress without credit; one that registers memory does so in expose() or on its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ccl/errors.h"
#include "ccl/exposed.h"
#include "ccl/transports/message.h"

namespace trellis::ccl {

class Sender {
 public:
  virtual ~Sender() = default;
  virtual bool advance(Sending&) = 0;  // true once the data may be changed again
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual bool advance(Receiving&) = 0;  // true once the whole message has been consumed
};

// What a rank is doing. Other ranks read it when something takes too long.
struct Activity {
  std::uint64_t operation = 0;  // number started on this communicator
  std::uint64_t count = 0;
  std::uint64_t heartbeat = 0;  // increases while the rank waits
  std::int32_t step = -1;
  Rank waits_for = -1;
  Rank root = 0;
  std::uint8_t divides = 0;  // a Notice::Call: it is in that, and the other members describe its last operation
  std::uint8_t collective = 0;
  std::uint8_t type = 0;
  std::uint8_t wire = 0;  // type of messages
  std::uint8_t reduction = 0;
  bool running = false;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual Rank ranks() const = 0;
  virtual int lanes() const = 0;  // per ordered pair of ranks; the last one is for send and recv
  virtual std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) = 0;
  // How many of these bytes peers can read in place, in messages of `message` bytes.
  virtual std::size_t readable(const void* data, std::size_t bytes, std::size_t message) = 0;
  virtual Sender& sender(Rank to, int lane) = 0;
  virtual Receiver& receiver(Rank from, int lane) = 0;

  // Backs off, longer as `idle` grows: the number of calls since something happened. Wakes when a message arrives or
  // room appears. True when it is time to check whether all ranks are well.
  virtual bool wait(std::uint32_t idle) = 0;
  virtual bool could_advance() const = 0;  // a waiting lane end could go on; sends of a rank that has left count
  virtual Rank unread() const = 0;         // a rank whose message has arrived and was not received yet; -1: none

  virtual void show(const Activity&) = 0;  // publishes what this rank does
  virtual void rest() = 0;                 // publishes that it is done
  virtual Activity activity(Rank) const = 0;
  virtual bool alive(Rank) = 0;           // false once it has left, or its process is known to have ended
  virtual bool left(Rank) const = 0;      // it has closed the communicator
  virtual void mark_lost(Rank) = 0;       // tells all ranks
  virtual Rank lost() const = 0;          // the first that was marked; -1: none
  virtual void withdraw() = 0;            // withdraws what this rank offers in place, since it may be freed from now on
  virtual void mark_aborted() = 0;        // by this rank
  virtual Rank aborted_by() const = 0;    // the first rank that did; -1: none
  virtual bool aborted_here() const = 0;  // this rank did, first or not
  bool aborted() const { return aborted_by() >= 0; }
  virtual bool over() const = 0;                 // a rank is lost or has aborted
  virtual std::int64_t process(Rank) const = 0;  // process id on this host

  // Every rank has a board that it alone writes and all read. It holds its last post, whole. Boards work after failures
  // too, and a rank that stops while it posts blocks nobody.
  virtual void post(std::span<const std::byte>) = 0;      // at most most_notice_bytes()
  virtual std::vector<std::byte> posted(Rank) const = 0;  // empty: nothing posted yet
  virtual std::uint32_t posts(Rank) const = 0;            // number of posts so far
  // Waits for a short time, which grows with `idle`, until the number of all ranks' posts is more than `than`.
  virtual void wait_for_posts(std::uint64_t than, std::uint32_t idle) = 0;

  virtual std::string_view name() const = 0;
  virtual std::uint64_t identity() const = 0;    // the same on all ranks; unique to this communicator
  virtual std::size_t memory_bytes() const = 0;  // in use by this rank's part
};

}  // namespace trellis::ccl
