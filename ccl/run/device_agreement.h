// What ranks tell each other before each collective, on devices that have simulated time or collectives of their own:
// their core and its time, and whether their device can run the collective itself. It does so only if all can.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ccl/call.h"
#include "ccl/config.h"
#include "ccl/transports/transport.h"
#include "device/capabilities.h"
#include "device/device.h"
#include "device/native_collective.h"
#include "device/simulated_time.h"

namespace trellis::ccl {

bool agrees_first(device::Device&, Rank ranks);  // must be the same on all ranks

class DeviceAgreement {
 public:
  DeviceAgreement(device::Device&, const Config&, const Transport&);

  bool needed() const { return needed_; }
  // The exchange to run before this call. `supplied`: the caller supplies the call's schedule.
  Call exchange(const Call&, bool supplied);
  // The functions below are about the last exchange.
  bool native() const { return native_.has_value(); }
  std::unique_ptr<device::NativeCollectiveRun> start() { return collectives_->start(*native_, std::move(turn_)); }
  // Why the device does not run the call itself; null: it does, or has no collectives at all.
  const std::string* why_not() const { return why_not_; }
  void conclude();                // once the exchange has ended
  void fail() { turn_.reset(); }  // if the exchange failed

  std::int64_t core_of(Rank) const;  // as the rank told; before the first exchange, the rank's number
  device::CollectiveSpec run_of(const Call&, std::string_view config, bool in_place) const;

 private:
  struct Told;
  Told told(Rank) const;
  std::vector<device::RankClock> clocks() const;       // by rank
  std::vector<std::size_t> counts(const Call&) const;  // of all blocks of a _v form; else empty
  std::string refusal(const Call&, bool supplied);
  std::string refusal_of_others() const;
  const std::string* kept(std::string reason);

  device::Device& device_;
  const std::string algorithm_;  // the one that the user has fixed; empty: none
  const bool plain_;             // rounding and type of messages are the defaults, the only ones that devices do
  const Rank rank_, ranks_;
  const bool needed_;
  device::NativeCollectives* const collectives_;  // null: the device has none, or this rank is alone
  device::NativeWorld world_;
  std::vector<std::byte> own_, all_;
  std::size_t each_ = 0;  // bytes that each rank contributes to the exchange
  device::NativeCollective wanted_;
  std::optional<device::NativeCollective> native_;
  device::NativeTurn turn_;
  std::string own_refusal_;
  const std::string* why_not_ = nullptr;
  std::set<std::string> reasons_;  // kept, as the flight recorder's entries point to them
};

}  // namespace trellis::ccl
