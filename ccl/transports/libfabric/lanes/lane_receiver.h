// The receiving end of a lane over the data path. Messages are taken in the order of their numbers. For a large one it
// grants room, in place where it can.
#pragma once

#include <array>
#include <deque>
#include <optional>

#include "ccl/transports/lane.h"
#include "ccl/transports/libfabric/data/data_path.h"

namespace trellis::ccl::libfabric {

class LaneReceiver : public Receiver {
 public:
  LaneReceiver(DataPath& path, Rank from, int lane);
  ~LaneReceiver() override;
  bool advance(Receiving&) override;
  bool could_advance() const;
  std::optional<std::uint32_t> unread() const {  // the mark of the message that is next, if it has arrived
    return next().there ? std::optional(next().packet.mark) : std::nullopt;
  }
  std::uint32_t taken() const { return number_; }
  bool arrive(const PacketHeader&, PacketBuffer*);                     // false: it does not keep the packet
  void asked(const PacketHeader&, std::vector<std::uint32_t> pieces);  // answers with those that have not arrived
  void told() { told_ = number_; }                         // a packet to the sender has said how many were taken
  void summed(const PacketHeader&, const GrantChecksum&);  // the sender tells the checksum of a grant's bytes
  void drop();
  void drop_rail(int);
  void begin_again();
  bool resume();
  std::size_t memory_bytes() const;

 private:
  struct Arrived {
    bool there = false;
    PacketHeader packet;
    PacketBuffer* buffer = nullptr;  // null: the message was only announced
  };
  struct Opened {  // room that was granted
    std::size_t offset = 0, bytes = 0;
    std::uint32_t first = 0;
    std::size_t slot = 0;  // of the staging memory, unless the room is in place
    Grant grant;
    std::byte* to = nullptr;
    std::uint32_t pieces = 0, posted = 0;  // posted: how many receives for tagged messages are posted
    bool sent = false;
    std::optional<std::uint32_t> checksum = {};  // as the sender told it
  };
  struct Asked {
    PacketHeader packet;
    std::vector<std::uint32_t> pieces;
  };
  struct Slots;
  bool advance_now(Receiving&);
  bool receive_eager(Receiving&);
  bool receive_large(Receiving&);
  void begin(Receiving&);
  std::size_t placed_piece_of(std::size_t bytes) const;
  void grant_more(Receiving&);
  void send_grants(const Receiving&);
  void name_place(Opened&) const;
  const RegistrationCache::Use& registered_with(const Opened&) const;
  bool post_pieces(Opened&);
  void finish(std::size_t large);  // `large`: the bytes of a large message; 0: it was eager
  bool tell_taken();
  bool answer();  // false: the answer cannot be sent now
  void check(const Receiving&) const;
  bool first_complete() const {
    return !open_.empty() && path_.landings().complete(open_.front().first) &&
           (open_.front().checksum || !path_.checks());
  }
  Arrived& next() { return window_[number_ % window]; }
  const Arrived& next() const { return window_[number_ % window]; }

  DataPath& path_;
  const Rank from_;
  const int lane_;
  std::uint32_t number_ = 0;  // of the next message
  std::uint32_t told_ = 0;    // what number_ was when the sender was last told
  std::array<Arrived, window> window_ = {};
  bool waiting_ = false, resumes_ = false;
  std::optional<Asked> asked_;  // the sender's last request, while it is not answered
  // The large message under way.
  bool begun_ = false;
  std::size_t granted_ = 0;  // bytes
  std::deque<Opened> open_;
  RegistrationCache::Use place_;
  std::unique_ptr<Slots> slots_;
};

}  // namespace trellis::ccl::libfabric
