// Interface of the network models: transfers share resources (links, HBM, DMA engines), each with a rate. Rates and
// work are integers, so the order of requests cannot change when they end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/hardware/time/units.h"

namespace trellis::sim {

using Rate = std::int64_t;                     // thousandths of a byte a second, or whole bytes
__extension__ using Work = unsigned __int128;  // Rate x picoseconds
inline constexpr Work work_of_byte = Work{1'000} * static_cast<Work>(second);

// The unit of rates: whole bytes a second if sixteen times the rate of the fastest resource, in thousandths, would
// overflow a Rate.
enum class RateUnit : std::int64_t { byte = 1, thousandth = 1'000 };
inline constexpr double most_in_thousandths = 5.7e14, most_in_bytes = 5.7e17;  // bytes a second

inline Rate rate_of(double bytes_per_second, RateUnit unit = RateUnit::thousandth) {
  return static_cast<Rate>(bytes_per_second * static_cast<double>(unit));
}
// The work of moving the bytes, rounded down to whole ones. Throws invalid_argument for more than 1e20.
Work work_of(double bytes, RateUnit unit = RateUnit::thousandth);
inline Time time_of(Work work, Rate rate) {  // rounded up; throws invalid_argument beyond longest_time
  const auto speed = static_cast<Work>(rate);
  const Work time = (work + speed - 1) / speed;
  if (time > static_cast<Work>(longest_time)) refuse_time(static_cast<double>(time) * 1e-12);
  return static_cast<Time>(time);
}

// A transfer's use of a resource. `weight`: resource time for a byte, in sixteenths of the usual. It is higher for
// several passes, for a slower kind of pass, and for a transfer that stands for several like ones.
struct ResourceUse {
  std::uint32_t resource = 0;
  std::uint32_t weight = 16;
  bool operator==(const ResourceUse&) const = default;
};
inline constexpr std::uint32_t one_use = 16;

class Network {
 public:
  virtual ~Network() = default;

  // Starts a transfer now; `tag` is the caller's. It moves once settle() has been called.
  virtual void start(std::span<const ResourceUse>, Work, std::uint64_t tag) = 0;
  virtual void settle() = 0;  // call after all starts of an instant
  // The earliest time at which something may end. Perhaps nothing ends then. forever: nothing is in flight.
  virtual Time next() const = 0;
  // `to`: at most next(); appends the tags of ended transfers
  virtual void advance(Time to, std::vector<std::uint64_t>& ended) = 0;

  virtual double carried(std::uint32_t resource) const { return carried_[resource]; }  // bytes so far, weighted
  virtual bool exact() const { return true; }  // true while results are those of the model, except for rounding

 protected:
  std::vector<double> carried_;
};

}  // namespace trellis::sim
