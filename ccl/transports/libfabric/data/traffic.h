// How much was sent to each rank, and how much came from it: a communicator that is closed in order waits until both
// ends count alike. Packets are counted anew on each rail that carries them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl::libfabric {

class Traffic {
 public:
  explicit Traffic(Rank ranks)
      : ranks_(ranks), sent_(static_cast<std::size_t>(ranks)), arrived_(new Arrived[static_cast<std::size_t>(ranks)]) {}

  void packet_sent(Rank r) { ++sent(r).packets; }
  void piece_sent(Rank r) { ++sent(r).pieces; }
  void piece_failed(Rank r) { --sent(r).pieces; }
  void had_arrived(Rank r, std::size_t pieces) { sent(r).pieces += pieces; }  // that had failed
  void packet_arrived(Rank r) { arrived_[r].packets.fetch_add(1, std::memory_order_relaxed); }
  void piece_arrived(Rank r) { arrived_[r].pieces.fetch_add(1, std::memory_order_relaxed); }

  void count_packets_anew_to(Rank r) { sent(r).packets = 0; }
  void count_packets_anew_from_all() {
    for (Rank r = 0; r < ranks_; ++r) arrived_[r].packets.store(0, std::memory_order_relaxed);
  }

  std::uint64_t sent_to(Rank r) const {
    const Sent& s = sent_[static_cast<std::size_t>(r)];
    return s.packets + s.pieces;
  }
  // From each rank; may be called by any thread, and when this is gone.
  std::function<std::uint64_t(Rank)> arrived() const {
    return [all = arrived_](Rank r) {
      return all[r].packets.load(std::memory_order_relaxed) + all[r].pieces.load(std::memory_order_relaxed);
    };
  }

 private:
  struct Sent {
    std::uint64_t packets = 0, pieces = 0;
  };
  struct Arrived {
    std::atomic<std::uint64_t> packets = 0, pieces = 0;
  };
  Sent& sent(Rank r) { return sent_[static_cast<std::size_t>(r)]; }
  const Rank ranks_;
  std::vector<Sent> sent_;
  const std::shared_ptr<Arrived[]> arrived_;
};

}  // namespace trellis::ccl::libfabric
