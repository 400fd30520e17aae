// Fail-over: how all ranks close a rail that has stopped, and retransmit what went over it on the other rails.
#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "ccl/transports/libfabric/control/control_link.h"
#include "ccl/transports/libfabric/data/data_path.h"
#include "ccl/transports/libfabric/data/register_region.h"
#include "ccl/transports/libfabric/lanes/lane_receiver.h"
#include "ccl/transports/libfabric/lanes/lane_sender.h"
#include "ccl/transports/libfabric/wire/open_wire.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks_for_moves = 200us;

}  // namespace

bool DataPath::is_over(Rank to, int rail) const {
  return has_rail(rail) || presence_->lock().states().rails_left_by(to).has(rail);
}

// Closes a rail that has stopped, on all ranks. Its pieces are retransmitted once the receiver has closed it too: until
// then they might still arrive, after their place was reused.
void DataPath::look_after_rails() {
  for (int rail = packet_rail(); rail < rails(); ++rail)  // leave_rail may open another
    if (presence_->verdict().rails_left().has(rail)) leave_rail(rail);
  if (!sends_again()) return;
  if (const int rail = monitor_.stopped(Clock::now()); rail >= 0) leave_rail(rail);
}

// Opens a further rail on the interface of rail `like`. Its endpoint has fresh connections. False: none can be opened,
// or memory can't be registered with it.
bool DataPath::open_another_rail(int like) {
  if (!sends_again() || no_more_rails_) return false;
  const int rail = rails();
  try {
    std::unique_ptr<Wire> wire = open_wire(settings_, static_cast<std::uint64_t>(presence_->roster().rank()),
                                           like % settings_.rails, rail, use_);
    registrations_.add_rail(
        [&](const RegistrationCache::Range& r, bool for_peers) { return register_region(*wire, r, for_peers); });
    wires_.push_back(std::move(wire));
  } catch (const std::exception&) {
    no_more_rails_ = true;
    return false;
  }
  rails_.add();
  traffic_.begin(rail);
  monitor_.begin(rail);
  return true;
}

void DataPath::leave_rail(int rail) {
  if (!has_rail(rail) || (rails_.only_one() && !open_another_rail(rail))) return;
  const bool carries_packets = rail == packet_rail();
  const std::unique_ptr<Wire> wire = std::move(wires_[static_cast<std::size_t>(rail)]);
  rails_.leave(rail);
  if (carries_packets)
    for (PeerAddresses& peer : known_) peer.moved = all_moved_ = false;
  wire->end();
  std::array<WireEvent, 16> had_come;
  while (const std::size_t count = wire->poll(had_come))
    for (std::size_t i = 0; i < count; ++i) happened(had_come[i], rail);
  // Fails the rail's pieces before the lane ends drop the rail: drop_rail() removes the rail from the grants of failed
  // pieces, too.
  for (const auto& p : pieces_out_.all)
    if (p->under_way && p->rail == rail) piece_ended(*p, false);
  ends_.each([&](auto& end) { end.drop_rail(rail); });
  registrations_.drop_rail(rail);
  // Packets that were under way are sent again to a rank once it has closed the rail, too: until then they might still
  // arrive, and be counted.
  if (carries_packets) packets_->open(this->wire(packet_rail()), packet_rail());
  presence_->lock().states().announce([&](PublicState& s) {
    s.head.rails_left = rails_.left().word();
    s.address = address();
  });
  control_->wake();
}

void DataPath::tell_soon() {
  if (std::exchange(all_told_, false)) looked_for_moves_ = Clock::now();  // so the next look comes a whole pause later
}

void DataPath::begin_again_with_those_who_moved() {
  if (all_resumed_ && Clock::now() - looked_for_moves_ < between_looks_for_moves) return;
  looked_for_moves_ = Clock::now();
  all_moved_ = all_resumed_ = all_told_ = true;
  for (std::size_t r = 0; r < known_.size(); ++r) {
    const auto rank = static_cast<Rank>(r);
    if (!known_[r].moved && presence_->lock().states().rails_left_by(rank).first_outside() == packet_rail()) {
      known_[r].moved = true;
      ends_.each_of(rank, [](auto& end) { end.begin_again(); });
    }
    all_moved_ = all_moved_ && known_[r].moved;
    if (known_[r].moved && !presence_->lock().states().left(rank))
      ends_.each_of(rank, [&](auto& end) { all_resumed_ = end.resume() && all_resumed_; });
  }
}

}  // namespace trellis::ccl::libfabric
