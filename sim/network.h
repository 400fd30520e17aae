// Who shares what: transfers on their way over links, HBM and DMA engines, each a resource with a rate. Rates and work
// are whole numbers, so that the order in which things are asked for cannot change when they end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/units.h"

namespace trellis::sim {

using Rate = std::int64_t;                     // thousandths of a byte a second
__extension__ using Work = unsigned __int128;  // Rate x picoseconds
inline constexpr Work work_of_byte = Work{1'000} * static_cast<Work>(second);

inline Rate rate_of(double bytes_per_second) { return static_cast<Rate>(bytes_per_second * 1e3); }
inline Time time_of(Work work, Rate rate) {  // rounded up
  const auto speed = static_cast<Work>(rate);
  return static_cast<Time>((work + speed - 1) / speed);
}

// A transfer's part in a resource. `weight`: resource time for a byte, in sixteenths of the usual: several passes over
// it, a slower kind of pass, or several like transfers that one stands for.
struct Use {
  std::uint32_t resource = 0;
  std::uint32_t weight = 16;
  bool operator==(const Use&) const = default;
};
inline constexpr std::uint32_t one_use = 16;

class Network {
 public:
  virtual ~Network() = default;

  // Starts a transfer now; `tag` is the caller's. It moves once settle() has been called.
  virtual void start(std::span<const Use>, Work, std::uint64_t tag) = 0;
  virtual void settle() = 0;  // after all starts of an instant
  // When something ends, at the earliest, but perhaps nothing does then; forever: nothing is on its way.
  virtual Time next() const = 0;
  virtual void advance(Time to, std::vector<std::uint64_t>& ended) = 0;  // `to`: next() at most; appends the tags

  virtual double carried(std::uint32_t resource) const { return carried_[resource]; }  // bytes so far, weighted
  virtual bool exact() const { return true; }  // what its model says, so far, but for rounding

 protected:
  std::vector<double> carried_;
};

}  // namespace trellis::sim
