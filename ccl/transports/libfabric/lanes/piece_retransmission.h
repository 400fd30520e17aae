// Retransmission of the pieces of a lane's large message. The receiver may have pieces that failed, or went over a rail
// that was closed, and may have reused their place since. So it is asked which it lacks, and only those are
// retransmitted.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ccl/transports/libfabric/data/data_path.h"

namespace trellis::ccl::libfabric {

class PieceRetransmission {
 public:
  PieceRetransmission(DataPath&, Rank to, int lane);
  void begin(std::uint32_t message);
  void failed(const PieceOut& p) { doubtful_.push_back({p}); }
  void gone(const PieceOut& p) { gone_.push_back(p); }  // the wire has completed it, but its rail may still fail
  void drop_rail(int rail);                             // what was completed over it becomes doubtful
  void granted(std::uint32_t message, const Grant&);    // the grant came again, for other rails
  void answered(const PacketHeader&, std::span<const std::uint32_t> lacking);
  void begin_again();                                        // requests may be lost, so pieces are asked for again
  void moved(const std::byte* from, const std::byte* to);    // the message's bytes are elsewhere now
  std::size_t doubtful() const { return doubtful_.size(); }  // pieces that may not have arrived
  void has_arrived();                                        // the whole message has arrived
  // Calls `post` with each piece that the receiver lacks; `post` returns false if it can't send now. Asks the receiver
  // about the other doubtful pieces.
  void advance(const std::function<bool(PieceOut)>& post);
  void end() { gone_.clear(); }  // call it when nothing is to be retransmitted any more
  void drop();

 private:
  struct Doubtful {
    PieceOut piece;
    std::uint32_t request = 0;  // the last request that asked about it; 0: none has
    bool lacking = false;
  };
  void ask();

  DataPath& path_;
  const Rank to_;
  const int lane_;
  std::uint32_t message_ = 0;
  std::vector<Doubtful> doubtful_;
  std::vector<PieceOut> gone_;
  std::uint32_t requests_ = 0;
  Deadline requested_ = {};
  std::chrono::milliseconds patience_;
};

}  // namespace trellis::ccl::libfabric
