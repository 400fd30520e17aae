// The two ends of a lane over the data path. Messages are numbered, and taken in that order. A small one travels whole.
// For a large one the receiver grants room, in place where it can, and the sender puts pieces there.
#pragma once

#include <array>
#include <deque>

#include "ccl/transports/lane.h"
#include "ccl/transports/libfabric/data/data_path.h"

namespace trellis::ccl::libfabric {

class LaneSender : public Sender {
 public:
  LaneSender(DataPath& path, Rank to, int lane);
  ~LaneSender() override;
  bool advance(Sending&) override;
  bool could_advance() const;
  void taken(std::uint32_t);  // by the receiver, in all
  void granted(const Packet&, const Grant&);
  void piece_done(const PieceOut&, bool well);
  void drop();  // what it has of the wires
  void drop_rail(int);
  Rank to() const { return to_; }

 private:
  struct Offered {
    Packet packet;
    Grant grant;
    std::uint32_t next = 0;  // piece
  };
  struct Staged;
  bool advance_now(Sending&);
  bool send_eager(Sending&);
  bool send_large(Sending&);
  bool begin(Sending&);
  bool send_next_piece(Sending&, Offered&);
  Local bytes_of(Sending&, const Grant&, std::size_t bytes, int rail);
  void describe(Local&, int rail) const;
  Packet packet(Packet::Kind, const Sending&) const;
  bool full() const { return number_ - taken_ >= window; }

  DataPath& path_;
  const Rank to_;
  const int lane_;
  std::uint32_t number_ = 0;  // of the next message
  std::uint32_t taken_ = 0;
  bool waiting_ = false;
  // The large message under way.
  bool begun_ = false, announced_ = false;
  std::size_t bytes_ = 0;
  std::uint32_t mark_ = 0;
  std::size_t posted_ = 0, made_ = 0;  // bytes; of those that a producer makes
  std::uint32_t outstanding_ = 0;
  std::vector<PieceOut> again_;  // pieces that failed
  std::vector<Offered> offers_;
  Registrations::Use source_;
  std::unique_ptr<Staged> staged_;
  std::vector<std::byte> made_small_;
};

class LaneReceiver : public Receiver {
 public:
  LaneReceiver(DataPath& path, Rank from, int lane);
  ~LaneReceiver() override;
  bool advance(Receiving&) override;
  bool could_advance() const;
  bool unread() const { return next().there; }
  std::uint32_t taken() const { return number_; }
  bool arrive(const Packet&, PacketBuffer*);  // false: it does not keep the packet
  void told() { told_ = number_; }            // a packet to the sender has said how far this is
  void drop();
  void drop_rail(int);
  std::size_t memory_bytes() const;

 private:
  struct Arrived {
    bool there = false;
    Packet packet;
    PacketBuffer* buffer = nullptr;  // null: announced
  };
  struct Opened {  // room that was granted
    std::size_t offset = 0, bytes = 0;
    std::uint32_t first = 0;
    std::size_t slot = 0;  // staged
    Grant grant;
    std::byte* to = nullptr;
    std::uint32_t pieces = 0, posted = 0;  // tagged: receives
    bool sent = false;
  };
  struct Slots;
  bool advance_now(Receiving&);
  bool receive_eager(Receiving&);
  bool receive_large(Receiving&);
  void begin(Receiving&);
  void grant_more(Receiving&);
  void send_grants(const Receiving&);
  bool post_pieces(Opened&);
  void finish();
  void tell_taken();
  void check(const Receiving&) const;
  Arrived& next() { return window_[number_ % window]; }
  const Arrived& next() const { return window_[number_ % window]; }

  DataPath& path_;
  const Rank from_;
  const int lane_;
  std::uint32_t number_ = 0;  // of the next message
  std::uint32_t told_ = 0;    // how far the sender was told that this is
  std::array<Arrived, window> window_ = {};
  bool waiting_ = false;
  // The large message under way.
  bool begun_ = false;
  std::size_t granted_ = 0;  // bytes
  std::deque<Opened> open_;
  Registrations::Use place_;
  std::unique_ptr<Slots> slots_;
};

}  // namespace trellis::ccl::libfabric
