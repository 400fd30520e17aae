// The data path of one communicator: its wires, the packets that it keeps, and the ends of its lanes. One mutex guards
// all of it; whoever calls a function here holds that mutex.
#pragma once

#include <mutex>
#include <vector>

#include "ccl/config.h"
#include "ccl/transports/libfabric/data/packet_channel.h"
#include "ccl/transports/libfabric/data/peer_addresses.h"
#include "ccl/transports/libfabric/data/piece.h"
#include "ccl/transports/libfabric/data/rail_monitor.h"
#include "ccl/transports/libfabric/data/registration_cache.h"
#include "ccl/transports/libfabric/lanes/lane_ends.h"
#include "ccl/transports/libfabric/lanes/piece_arrival_tracker.h"
#include "ccl/transports/libfabric/presence/presence.h"
#include "ccl/transports/libfabric/rails/delivery_counters.h"
#include "ccl/transports/libfabric/rails/rail_load_balancer.h"
#include "ccl/transports/libfabric/wire/provider.h"

namespace trellis::ccl::libfabric {

class ControlLink;

class DataPath {
 public:
  DataPath(const FabricSettings&, bool on_device, std::shared_ptr<Presence>, std::shared_ptr<ControlLink>, int lanes);
  ~DataPath();

  std::mutex& mutex() { return mutex_; }
  std::vector<std::byte> address() const;  // of all wires, for the peers
  LaneEnds& ends() { return ends_; }
  void progress();
  int descriptor() { return closed() ? Wire::none : wire(packet_rail()).descriptor(); }
  void close();  // nothing touches the caller's memory after this
  bool closed() const { return wires_.empty(); }
  bool could_advance() const;
  std::optional<std::uint32_t> unread(Rank from, int lane) const;
  bool all_arrived(Deadline heard_since);  // all that was sent to the ranks that are there and were heard since then
  DeliveryCounters& traffic() { return traffic_; }
  std::size_t memory_bytes() const;

  // For the ends of lanes.
  std::size_t eager_bytes() const { return eager_bytes_; }
  const WireLimits& limits() const { return limits_; }
  int rails() const { return static_cast<int>(wires_.size()); }  // including those that were left
  int open_rails() const { return rails_.open(); }
  // True if sent messages are kept until they were taken, so that they can be retransmitted over another rail.
  bool sends_again() const { return settings_.rails > 1 || limits_.listens; }
  std::size_t most_piece() const { return most_piece_; }
  bool has_rail(int rail) const { return wires_[static_cast<std::size_t>(rail)] != nullptr; }
  Wire& wire(int rail) { return *wires_[static_cast<std::size_t>(rail)]; }
  PieceArrivalTracker& landings() { return landings_; }
  RegistrationCache& registrations() { return registrations_; }
  bool send(Rank to, PacketHeader, const void* more, std::size_t more_bytes);  // false: it cannot be sent now
  bool send_piece(Rank to, const PieceOut&);                                   // false: it cannot be sent now
  void give(PacketBuffer* b) { packets_->give(b); }  // gives back a packet that a lane end has kept
  bool takes_pieces() const { return !rails_.full(rail_for(0)); }
  int packet_rail() const { return rails_.first(); }
  int rail_for(std::size_t bytes) const;
  // True if a piece that did not complete over this rail can no longer arrive there, so that it may be retransmitted.
  bool is_over(Rank to, int rail) const;
  bool receive_piece(const LocalBytes&, std::uint32_t number);
  bool checks() const { return settings_.checksum; }  // checksums are sent and verified
  void expect_undamaged() const;                      // throws MessageDamaged if a packet was damaged
  void resume_later() { all_resumed_ = false; }       // call it when there was no room for a lane end's packet
  void tell_soon();                                   // after a pause, tells what was taken, unless a packet told it
  bool copies() const { return !checks() && !limits_.registers_local; }  // lanes copy what they may have to retransmit

 private:
  RegisteredMemory registered(const RegistrationCache::Range&, bool for_peers);
  bool open_another_rail(int like);
  void take(PacketBuffer*);
  void land(std::uint32_t piece, int rail);
  void happened(const WireEvent&, int rail);
  void look_after_rails();
  void leave_rail(int rail);
  void begin_again_with_those_who_moved();
  void piece_ended(PieceOut&, bool well);
  PeerAddresses& known(Rank r) { return known_[static_cast<std::size_t>(r)]; }
  fi_addr_t address_of(Rank, int rail);  // FI_ADDR_UNSPEC: the rank has not told its address yet

  std::mutex mutex_;
  const std::shared_ptr<Presence> presence_;
  const std::shared_ptr<ControlLink> control_;
  const FabricSettings settings_;
  const EndpointNeeds use_;
  std::optional<Rank> damaged_by_;            // who sent a packet that was damaged; -1: it can't be told
  std::vector<std::unique_ptr<Wire>> wires_;  // by rail; null: the rail was left
  WireLimits limits_;
  std::size_t eager_bytes_ = 0, most_piece_ = 0;
  std::unique_ptr<PacketChannel> packets_;  // over the first open rail
  bool all_moved_ = true, all_resumed_ = true, all_told_ = true, no_more_rails_ = false;
  RailLoadBalancer rails_;
  Deadline looked_for_moves_ = {};
  PiecePool<PieceOut> pieces_out_;
  PiecePool<PieceIn> pieces_in_;
  PieceArrivalTracker landings_;
  RegistrationCache registrations_;
  std::vector<PeerAddresses> known_;  // by rank
  LaneEnds ends_;
  DeliveryCounters traffic_;
  RailMonitor monitor_;
  std::unique_ptr<device::MemoryReleaseNotifier::Watch> watch_;
};

}  // namespace trellis::ccl::libfabric
