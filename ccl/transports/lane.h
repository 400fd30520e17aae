// Lanes: the part of a transport that moves bytes. A lane is one direction between two ranks on one channel; its
// messages arrive in the order in which they were sent. Only wait() blocks; callers call advance() until it is done.
//
// Fabrics fit behind this interface: one with unordered delivery numbers its messages; one with limited credits makes
// no progress without credit; one that registers memory does so in expose() or by itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

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

class AllToAllExchange;

class Lanes {
 public:
  virtual ~Lanes() = default;
  virtual int lanes() const = 0;  // per ordered pair of ranks; the last one is for send and recv
  virtual std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) = 0;
  // How many of these bytes peers can read in place, in messages of `message` bytes.
  virtual std::size_t readable(const void* data, std::size_t bytes, std::size_t message) = 0;
  virtual Sender& sender(Rank to, int lane) = 0;
  virtual Receiver& receiver(Rank from, int lane) = 0;
  virtual AllToAllExchange* rounds() const {
    return nullptr;
  }  // null unless all ranks share memory; see segment/all_to_all_exchange.h

  // Backs off by polling, yielding or sleeping, depending on `idle`: the number of calls since something happened.
  // Wakes when a message arrives or room appears, or after `most`. Returns true when it is time to check whether all
  // ranks are well.
  virtual bool wait(std::uint32_t idle, std::chrono::microseconds most) = 0;
  // Counts the arrivals over slow links at this rank and, as far as peers report them, at its peers; 0 for shared
  // memory. The count increases while data move, even if no lane end can advance.
  virtual std::uint64_t arrivals() const { return 0; }
  virtual bool could_advance() const = 0;  // a waiting lane end could advance, be it with data of a rank that has left
  // The mark of a message that has arrived on this lane and was not received yet; none: there is no such message.
  virtual std::optional<std::uint32_t> unread(Rank from, int lane) const = 0;
  virtual void withdraw() = 0;  // withdraws what this rank offers in place, since it may be freed from now on
};

}  // namespace trellis::ccl
