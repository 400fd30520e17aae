// How much was sent to each rank over each rail, and how much came from it. Completions do not tell that: some
// providers report a send as complete while a dead network has yet to take it. So ranks report to each other what
// arrived: a communicator that is closed in order waits until both ends count alike, and a rail over which nothing
// arrives is closed.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "ccl/errors.h"
#include "ccl/transports/libfabric/rails/rail_set.h"

namespace trellis::ccl::libfabric {

using RailCounts = std::array<std::uint64_t, most_rails>;

class DeliveryCounters {
 public:
  explicit DeliveryCounters(Rank ranks)
      : sent_(static_cast<std::size_t>(ranks)), arrived_(new Arrived[static_cast<std::size_t>(ranks)]) {}

  void sent(Rank to, int rail) { count(to, rail, 1); }
  void failed(Rank to, int rail) { count(to, rail, -1); }
  void had_arrived(Rank to, int rail) { count(to, rail, 1); }  // a piece whose send had failed has arrived after all
  void arrived(Rank from, int rail) {
    if (is_counted(rail)) arrived_[from][slot_of(rail)].fetch_add(1, relaxed);
  }
  // A rail takes the place of a closed one, whose counts are dropped.
  void begin(int rail) {
    newest_ = rail;
    for (std::size_t r = 0; r < sent_.size(); ++r) {
      sent_[r][slot_of(rail)] = 0;
      arrived_[static_cast<std::ptrdiff_t>(r)][slot_of(rail)].store(0, relaxed);
    }
  }

  // By the slots of rails.
  const RailCounts& sent_to(Rank r) const { return sent_[static_cast<std::size_t>(r)]; }
  // Arrivals from each rank; any thread may call it, also after this object is gone.
  std::function<RailCounts(Rank)> arrivals() const {
    return [all = arrived_](Rank from) {
      RailCounts counts;
      for (std::size_t rail = 0; rail < counts.size(); ++rail) counts[rail] = all[from][rail].load(relaxed);
      return counts;
    };
  }

 private:
  using Arrived = std::array<std::atomic<std::uint64_t>, most_rails>;
  static constexpr auto relaxed = std::memory_order_relaxed;
  bool is_counted(int rail) const { return rail > newest_ - most_rails; }
  void count(Rank r, int rail, int more) {
    if (is_counted(rail)) sent_[static_cast<std::size_t>(r)][slot_of(rail)] += static_cast<std::uint64_t>(more);
  }
  int newest_ = most_rails - 1;
  std::vector<RailCounts> sent_;
  const std::shared_ptr<Arrived[]> arrived_;
};

}  // namespace trellis::ccl::libfabric
