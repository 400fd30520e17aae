// The sending end of a lane over the data path. Messages are numbered. A small one travels whole. For a large one the
// receiver grants room, and the sender puts pieces there.
#pragma once

#include <deque>
#include <span>

#include "ccl/transports/lane.h"
#include "ccl/transports/libfabric/data/data_path.h"
#include "ccl/transports/libfabric/data/offers.h"

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
  void lacking(const Packet&, std::span<const std::uint32_t> pieces);  // the receiver's answer
  void drop();                                                         // what it has of the wires
  void drop_rail(int);
  void begin_again();  // packets may be lost
  bool resume();       // false: it has more to say again
  Rank to() const { return to_; }

 private:
  struct Staged;
  bool advance_now(Sending&);
  bool send_eager(Sending&);
  bool send_large(Sending&);
  bool linger(const Sending&);
  bool is_free();  // for the next large message
  void end_large();
  bool begin(Sending&);
  bool send_next_piece(Sending&, Offered&);
  LocalBytes bytes_of(Sending&, const Grant&, std::size_t bytes, int rail);
  void describe(LocalBytes&, int rail) const;
  void end_run(const Grant&);
  bool send_sums(const Sending&);
  std::size_t slots_for(const Grant&) const;
  void send_again();
  void ask();
  bool has_been_taken() const { return static_cast<std::int32_t>(taken_ - large_) > 0; }
  Packet packet(Packet::Kind, const Sending&) const;
  bool full() const { return number_ - taken_ >= window; }

  DataPath& path_;
  const Rank to_;
  const int lane_;
  std::uint32_t number_ = 0;  // of the next message
  std::uint32_t taken_ = 0;
  bool waiting_ = false;
  bool refused_ = false;  // what it had to send lately: there is no room, or nobody takes it
  // The large message under way.
  std::uint32_t large_ = 0;  // its number; it is as well that of the one that lingers
  bool begun_ = false, announced_ = false;
  int looks_ = 0;  // for grants, before it was announced
  std::size_t bytes_ = 0;
  std::uint32_t mark_ = 0;
  std::size_t posted_ = 0, made_ = 0;  // bytes; of those that a producer makes
  std::uint32_t outstanding_ = 0;
  // Pieces that failed, or went over a rail that was closed. The receiver may have them, and may have reused their
  // place since, so it is asked which it lacks, and only those are retransmitted.
  struct Again {
    PieceOut piece;
    std::uint32_t ask = 0;  // in which this is asked; 0: in none yet
    bool lacking = false;
  };
  std::vector<Again> again_;
  std::vector<PieceOut> ended_;  // with several rails: pieces that are said to have gone
  std::uint32_t asks_ = 0;
  Deadline asked_ = {};
  std::chrono::milliseconds patience_;
  Offers offers_;
  // With checksums: the sum of the current run of pieces, and of those before it in the message.
  struct Summed {
    Sum sum;
    bool sent = false;
  };
  std::uint32_t checksum_ = 0;
  std::vector<Summed> sums_;
  Registrations::Use source_;
  std::unique_ptr<Staged> staged_;
  // The large message was sent but not taken yet: if necessary, it is retransmitted from this end's own memory. Eager
  // messages may follow meanwhile.
  bool lingers_ = false, waits_to_be_free_ = false;
  std::vector<std::byte> copy_;
  std::vector<std::byte> made_small_;
  // With several rails: the eager messages that were sent and not taken yet.
  struct Kept {
    Packet packet;
    std::vector<std::byte> bytes;
  };
  std::deque<Kept> kept_;
  std::size_t kept_sent_ = 0;  // once more
  bool resumes_ = false;
};

}  // namespace trellis::ccl::libfabric
