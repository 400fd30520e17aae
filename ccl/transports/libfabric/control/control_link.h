// ControlLink: the paths over which a communicator, and those split from it, exchange heartbeats and states: one wire,
// or one on the interface of each of the first two rails, and datagrams if hosts have IP addresses. Its own thread
// answers peers while the program computes.
#pragma once

#include <condition_variable>
#include <map>
#include <optional>
#include <thread>

#include "ccl/config.h"
#include "ccl/transports/libfabric/control/liveness_probes.h"
#include "ccl/transports/libfabric/control/message_authenticator.h"
#include "ccl/transports/libfabric/data/packet_pool.h"
#include "ccl/transports/libfabric/presence/presence.h"

namespace trellis::ccl::libfabric {

class ControlLink {
 public:
  explicit ControlLink(const FabricSettings&);
  ~ControlLink();

  std::vector<std::byte> address() const;
  ControlPaths paths() const;
  void begin(std::vector<Member>,
             const MessageAuthenticator&);  // call it first: who the members are, and what seals their messages
  std::string terms() const;                // how data are carried: must be equal on all ranks
  const Member& member(std::size_t place) const { return members_[place]; }

  void add(const std::shared_ptr<Presence>&);
  void flush(Presence&, Deadline);                    // sends what the Presence has to tell, until the deadline
  void retire(const std::shared_ptr<Presence>&);      // the Presence goes on answering peers for a while
  void progress();                                    // by any thread; rethrows a failure of the link's own thread
  void wake();                                        // call it when there is something to send
  std::uint64_t dropped() const { return dropped_; }  // messages that were forged, for another rank, or duplicates

 private:
  void move();
  void take(const PacketBuffer&, int path);
  void move(int path);
  void tell(const std::shared_ptr<Presence>&, Rank);
  void knock(std::size_t place);
  void heed_knocks();
  void run();
  void post_receives();
  void move_if_free();  // moves messages, unless another thread is doing so
  std::shared_ptr<Presence> presence_of(std::uint64_t identity);
  std::vector<std::shared_ptr<Presence>> all();

  // The state of one path.
  struct PathState {
    std::vector<fi_addr_t> addresses;  // by index into members_; FI_ADDR_UNSPEC: not known to the wire yet
    std::unique_ptr<PacketPool> pool;
    std::vector<PacketBuffer*> to_post;  // receive buffers
  };
  struct Sent {
    std::shared_ptr<Presence> presence;
    Rank to;
  };
  const int rails_;
  const bool checks_;
  bool datagrams_ = false;  // the last of the wires is one of datagrams
  bool listens_ = false;    // each process accepts connections at the address of its first wire
  std::mutex mutex_;        // guards the wires and what is sent over them
  std::vector<std::unique_ptr<Wire>> wires_;
  std::vector<PathState> paths_;  // by wire
  std::vector<Member> members_;
  std::map<PacketBuffer*, Sent> sent_;
  LivenessProbes knocks_;
  std::vector<std::byte> letter_;
  std::optional<MessageAuthenticator> seal_;
  std::atomic<std::uint64_t> dropped_ = 0;

  std::mutex presences_mutex_;
  std::map<std::uint64_t, std::shared_ptr<Presence>> presences_;
  std::vector<std::uint64_t> retired_;  // identities of retired communicators, the oldest first

  std::mutex sleep_mutex_;
  std::condition_variable wakes_;
  bool woken_ = false, ends_ = false;
  std::exception_ptr failure_;  // of the link's own thread
  std::thread thread_;
};

}  // namespace trellis::ccl::libfabric
