// What a fabric may do at its worst, for tests. The seed alone decides which operation meets which fate.
#pragma once

#include <cstdint>
#include <string>

namespace trellis::ccl::libfabric {

struct FaultInjection {
  std::uint64_t seed = 1;
  int reorder = 0;      // per cent of operations carried out, and of completions reported, after later ones
  int hold = 8;         // polls, at most, for which one is held back
  int refuse = 0;       // per cent of tries of an operation for which there is no room
  int credits = 0;      // most operations under way that send; 0: as many as the wire takes
  int outstanding = 0;  // most pieces under way: one more is an error of the caller; 0: as many as the wire says
  int places = 0;       // most runs of pieces that may be on their way to this process; 0: as many as usual
  int fail = 0;         // per cent of messages and pieces that end in an error and are not sent
  int only = -1;        // the rail whose wire has these faults; -1: all rails' wires, and those of control messages
  int control = 0;      // 1: also control messages over that rail's interface; 2: control messages alone; 3: data alone
  int former = 0;       // per cent of messages after a forged one, as if sent by a former process at this address
  int flip = 0;         // per cent of messages of which one bit arrives changed
  int spoil = 0;        // per cent of pieces of which one bit arrives changed
  int twice = 0;        // per cent of messages that come twice
  int stick = 0;        // after this many operations to a peer, no further one to it is carried out or ends; 0: never
  int early = 0;        // 1: operations that are not carried out because of `stick` are reported as successful
  int stall = 0;        // milliseconds, at most, for which nothing happens after one operation in a hundred
};

// Reads "seed=1,reorder=30,only=1". Throws invalid_argument that names the part at fault.
FaultInjection fault_injection_in(const std::string&);

// An operation that sends. It is identified by its content, so other messages do not change its fate.
struct Sent {
  enum class Kind : std::uint8_t { message, piece };
  std::uint32_t peer = 0;
  Kind kind = Kind::message;
  std::uint64_t name = 0;    // of a message: its head, without what differs from run to run; of a piece: its bytes
  std::uint64_t number = 0;  // how many of that name went to the peer before it
  auto operator<=>(const Sent&) const = default;
};

// What happens to an operation. These numbers depend neither on how long polls take nor on how many there are.
struct Fate {
  int refusals = 0;       // tries for which there is no room
  int hold = 0;           // polls before it is carried out
  int late = 0;           // polls before its end is reported
  int stall = 0;          // milliseconds for which the wire does nothing from then on
  bool fails = false;     // it ends in an error, and is not carried out
  bool former = false;    // a message of a former process goes before it
  bool twice = false;     // it goes once more after it
  bool flips = false;     // one bit of it
  std::uint64_t bit = 0;  // its index, modulo the number of bits
  bool operator==(const Fate&) const = default;
};

Fate fate_of(const FaultInjection&, const Sent&);

}  // namespace trellis::ccl::libfabric
