// AllToAllExchange: all-to-all rounds over a segment. In each round, every rank writes its messages for all others in
// one place of its own and reads theirs. A message costs its receiver one cache line, and nobody tells the sender that
// it was read.
//
// The rounds of all operations of a communicator are numbered in one sequence. A rank has four cells for small messages
// and two rooms for larger ones, used in turn. It writes to a room again two rounds later, when every other rank has
// read it: each publishes a round only after it has read the one before, and this rank has read the round in between.
//
// Messages of some size that peers can read in the sender's memory stay there. A rank that has read such messages says
// so, and their sender waits for that: its memory may change afterwards.
#pragma once

#include <span>
#include <vector>

#include "ccl/transports/message.h"
#include "ccl/transports/segment/in_place_read.h"
#include "ccl/transports/segment/peer_memory_access.h"
#include "ccl/transports/segment/segment.h"

namespace trellis::ccl {

class AllToAllExchange {
 public:
  using Message = std::span<const std::byte>;
  AllToAllExchange(const Segment&, Rank, PeerMemoryAccess&);

  Rank rank() const { return rank_; }
  std::size_t room() const { return segment_.shape().round_bytes; }  // for all messages of a round

  // A round: publish(); read() each message that has arrived(); end_reading() when none is missing(); end() once nobody
  // reads this rank's messages any more.
  // messages: by rank, the own one unused; if all are sent the `same`, a single one. may_stay: their memory stays as it
  // is until the round ends.
  void publish(std::uint32_t mark, std::span<const Message> messages, bool same, bool may_stay);
  bool stays() const { return stays_; }  // the published messages are read in this rank's memory
  // The ranks whose message of this round was not read yet, in order.
  const std::vector<Rank>& missing() const { return missing_; }
  // The message from that rank, once it is there; else null. It may be read until reading ends. Throws MessageMismatch
  // if it is not the one that is due.
  const std::byte* arrived(Rank from, std::size_t bytes, std::uint32_t mark);
  void read(Rank from) { std::erase(missing_, from); }
  // Calls use(), which reads messages that have arrived. Their senders keep them until it returns.
  template <class Use>
  void read_in_place(Use use) {
    const InPlaceRead reads(in_place_reads_);
    if (in_place_reads_ != nullptr) check_all_there();
    use();
  }
  void end_reading();
  bool is_reader(Rank) const;  // it has yet to read a message in this rank's memory
  Rank reader() const;         // the first of these; -1: none
  void end();

  bool could_advance() const;                            // a missing message has come, or the last reader has ended
  std::optional<std::uint32_t> unread(Rank from) const;  // mark of a message that has come and was not read

 private:
  std::uint32_t tag() const { return static_cast<std::uint32_t>(number_); }
  bool has_published(Rank r) const { return segment_.round(r, tag()).number.load(std::memory_order_acquire) == tag(); }
  bool stay(AllToAllCell&, std::span<const Message>, bool same);
  void copy(AllToAllCell&, std::span<const Message>, bool same);
  std::byte* place_for(AllToAllCell&, std::size_t bytes, std::size_t stride);
  const std::byte* see(Rank from, PayloadLocation, const SenderMemoryRange&);
  void check_there(Rank) const;
  void check_all_there() const;

  const Segment segment_;
  const Rank rank_;
  PeerMemoryAccess& reach_;
  std::atomic<std::uint32_t>* const in_place_reads_;
  std::uint64_t number_ = 1;  // of the round that is running, or is next
  bool published_ = false;    // the round is running
  bool stays_ = false;
  std::size_t bytes_ = 0;  // of this rank's messages of the round
  std::vector<Rank> missing_;
  std::vector<Rank> read_there_;                 // ranks in whose memory this one reads in this round
  std::vector<std::vector<std::byte>> fetched_;  // by rank: a message from memory that is not mapped here
};

}  // namespace trellis::ccl
