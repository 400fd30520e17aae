// Retransmission of the pieces of a lane's large message. The receiver may have pieces that failed, or went over a rail
// that was closed, and may have reused their place since. So it is asked which it lacks, and only those are
// retransmitted.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ccl/transports/libfabric/data/data_path.h"

namespace trellis::ccl::libfabric {

class Retransmission {
 public:
  Retransmission(DataPath&, Rank to, int lane);
  void begin(std::uint32_t message);
  void failed(const PieceOut& p) { doubtful_.push_back({p}); }
  void gone(const PieceOut& p) { gone_.push_back(p); }  // as the wire says; its rail may still fail
  void drop_rail(int rail);                             // what is said to have gone over it is doubtful
  void granted(std::uint32_t message, const Grant&);    // anew
  void answered(const Packet&, std::span<const std::uint32_t> lacking);
  void begin_again();                                        // packets may be lost
  void moved(const std::byte* from, const std::byte* to);    // the bytes of the message
  std::size_t doubtful() const { return doubtful_.size(); }  // pieces that may not have arrived
  void has_arrived();                                        // all of it
  // Retransmits what the receiver lacks, by `post`, which takes a copy of the piece; false: not now. Asks for the rest.
  void advance(const std::function<bool(PieceOut)>& post);
  void end() { gone_.clear(); }  // nothing is to be retransmitted
  void drop();

 private:
  struct Doubtful {
    PieceOut piece;
    std::uint32_t request = 0;  // in which this is asked; 0: in none yet
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
