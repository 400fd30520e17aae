// A rank's published state: everything that shared memory would show peers. Each message carries the whole state, so
// that messages may arrive in any order.
#pragma once

#include <span>
#include <vector>

#include "ccl/transports/join_outcome.h"
#include "ccl/transports/libfabric/rails/delivery_counters.h"
#include "ccl/transports/liveness.h"

namespace trellis::ccl::libfabric {

struct PublicStateHeader {
  std::uint64_t communicator = 0;
  std::uint64_t version = 0;     // of the sender's state; a message with an older one is ignored
  std::uint64_t number = 0;      // of the message, among those to its receiver: one that has come before is ignored
  std::uint64_t rails_left = 0;  // a RailSet
  RailCounts arrived = {};       // how many messages and pieces have come from the receiver, by the slots of rails
  RankActivity activity = {};
  std::int32_t from = -1;  // rank
  std::int32_t to = -1;    // rank
  std::int32_t lost = -1;
  std::int32_t aborted = -1;       // lost, aborted: the first such ranks that it knows of
  std::int32_t suspect = -1;       // the first rank of which another one has said that it hears nothing
  std::int32_t suspected_by = -1;  // the rank that said so
  std::int32_t missing = -1;       // the first that had not joined when rank 0 dropped the joining
  std::int32_t absent = -1;        // in a large communicator: first rank of the sender's subtree that has not joined
  std::uint32_t posts = 0;
  std::uint32_t edition = 0;                // of the state that neighbours relay in a large communicator
  std::uint32_t survey = 0;                 // the last in which it took part: it told its activity since that began
  std::uint32_t asks = 0;                   // number of the request that the receiver shall answer; 0: there is none
  std::uint32_t answers = 0;                // number of the receiver's last request, which this answers
  JoinOutcome outcome = JoinOutcome::open;  // of joining, as rank 0 decided
  std::uint16_t address_bytes = 0;
  std::uint16_t note_bytes = 0;
  std::uint16_t board_bytes = 0;
  std::uint16_t relayed_bytes = 0;
  bool joined = false;    // has come; in a large communicator, its whole subtree has
  bool gives_up = false;  // wants the joining to be dropped
  bool left = false;
};

struct PublicState {
  PublicStateHeader head;
  std::vector<std::byte> address;  // of its wires for data
  std::vector<std::byte> note;     // for a transport that is built on this one
  std::vector<std::byte> board;
  std::vector<std::byte> relayed;  // messages of others, without address and note
};

std::size_t public_bytes(const PublicState&);
void write_public(const PublicState&, std::span<std::byte>);
// False: no rank writes this. Ranks in it are checked by names_ranks_of(), as these bytes don't tell how many there
// are.
bool read_public(std::span<const std::byte>, PublicState&);
bool names_ranks_of(const PublicStateHeader&, Rank ranks);  // each rank that it names is one of `ranks` ranks, or -1

// Takes over the parts of a rank's state that others may relay: its activity, its board, whether it has left.
void take_relayed(PublicState& into, const PublicState& from);

}  // namespace trellis::ccl::libfabric
