// The sending end of a lane over the data path. Messages are numbered. A small one travels whole. For a large one the
// receiver grants room, and the sender puts pieces there.
#pragma once

#include <span>

#include "ccl/transports/lane.h"
#include "ccl/transports/libfabric/data/data_path.h"
#include "ccl/transports/libfabric/lanes/eager_retransmit_queue.h"
#include "ccl/transports/libfabric/lanes/grant_checksums.h"
#include "ccl/transports/libfabric/lanes/piece_retransmission.h"
#include "ccl/transports/libfabric/lanes/producer_buffer.h"
#include "ccl/transports/libfabric/lanes/received_grants.h"

namespace trellis::ccl::libfabric {

class LaneSender : public Sender {
 public:
  LaneSender(DataPath& path, Rank to, int lane);
  bool advance(Sending&) override;
  bool could_advance() const;
  void taken(std::uint32_t);  // how many messages the receiver has taken in all
  void granted(const PacketHeader&, const Grant&);
  void piece_done(const PieceOut&, bool well);
  void lacking(const PacketHeader& p, std::span<const std::uint32_t> pieces) { retransmission_.answered(p, pieces); }
  void drop();  // drops what needs the wires
  void drop_rail(int);
  void begin_again();  // call it when packets may be lost
  bool resume();       // sends again what may be lost; false: not all could be sent
  Rank to() const { return to_; }

 private:
  bool advance_now(Sending&);
  bool send_eager(Sending&);
  bool send_large(Sending&);
  bool linger(const Sending&);
  bool is_free();  // for the next large message
  void end_large();
  bool begin(Sending&);
  bool send_next_piece(Sending&, ReceivedGrant&);
  LocalBytes registered(const std::byte*, std::size_t bytes, int rail) const;
  std::size_t slots_for(const Grant&) const;
  void retransmit();
  bool has_been_taken() const { return static_cast<std::int32_t>(taken_ - large_) > 0; }
  PacketHeader packet(PacketHeader::Kind, const Sending&) const;
  bool full() const { return number_ - taken_ >= window; }

  DataPath& path_;
  const Rank to_;
  const int lane_;
  std::uint32_t number_ = 0;  // of the next message
  std::uint32_t taken_ = 0;
  bool waiting_ = false;
  bool refused_ = false;       // the last packet or piece could not be sent
  EagerRetransmitQueue kept_;  // empty unless DataPath::sends_again()
  ProducerBuffer produced_;
  // The large message under way.
  std::uint32_t large_ = 0;  // its number, also while it lingers
  bool begun_ = false, announced_ = false;
  int looks_ = 0;  // polls for a grant so far; after a few, the message is announced
  std::size_t bytes_ = 0;
  std::uint32_t mark_ = 0;
  std::size_t posted_ = 0;  // bytes
  std::uint32_t outstanding_ = 0;
  ReceivedGrants offers_;
  PieceRetransmission retransmission_;
  GrantChecksums checksums_;
  RegistrationCache::Use source_;
  // The large message was sent but not taken yet: if necessary, it is retransmitted from this end's own memory. Eager
  // messages may follow meanwhile.
  bool lingers_ = false, waits_to_be_free_ = false;
  std::vector<std::byte> copy_;
};

}  // namespace trellis::ccl::libfabric
