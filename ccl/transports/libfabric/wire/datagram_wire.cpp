#include <time.h>  // before errqueue.h, which needs it

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ccl/transports/libfabric/wire/address_list.h"
#include "ccl/transports/libfabric/wire/endpoint_wire.h"
#include "net/socket.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr std::size_t usual_message = 1'400;  // travels in one packet of an Ethernet
constexpr int most_refused = 64;              // malformed messages that one poll skips
constexpr int receive_room = 1 << 20;         // bytes: room for what comes while nobody polls

class DatagramWire : public Wire {
 public:
  DatagramWire(net::Descriptor socket, const net::Address& here) : socket_(std::move(socket)) {
    const auto bytes = std::as_bytes(std::span(&here.storage, 1)).first(here.length);
    address_.assign(bytes.begin(), bytes.end());
    limits_ = {.message = usual_message, .outstanding = 4096, .provider = "UDP"};
  }

  const WireLimits& limits() const override { return limits_; }
  std::span<const std::byte> address() const override { return address_; }

  fi_addr_t know(std::span<const std::byte> address, std::uint32_t) override {
    const auto there = net::address_in(address);
    if (!there) throw std::invalid_argument("a peer's address for datagrams: expected one of IP");
    peers_.push_back({*there});
    by_address_[key_of(*there)] = peers_.size() - 1;
    return peers_.size() - 1;
  }
  std::unique_ptr<MemoryRegion> region(const MemoryDescription&, bool) override { return nullptr; }

  bool send(fi_addr_t to, const LocalBytes& b, WireOperation& op) override {
    const Peer& peer = peers_[to];
    int error = 0;
    // An error of an earlier message, to any peer, is reported by the next call, so try once more.
    for (int turn = 0; turn < 2 && (error = sent(peer, b)) != 0 && error != EAGAIN && error != ENOBUFS; ++turn)
      take_errors();
    refusal_ = 0;
    if (error == EAGAIN || error == ENOBUFS) return false;
    if (error == 0) error = peer.error;
    events_.push_back(
        {.what = error == 0 ? WireEvent::What::done : WireEvent::What::failed, .operation = &op, .error = error});
    return true;
  }
  bool receive(const LocalBytes& b, WireOperation& op) override {
    receives_.push_back({b, &op});
    return true;
  }
  bool inject(fi_addr_t, const void*, std::size_t) override { return unsupported(); }
  bool write(const WriteTarget&, const LocalBytes&, std::uint32_t, WireOperation&) override { return unsupported(); }
  bool send_tagged(fi_addr_t, const LocalBytes&, std::uint32_t, WireOperation&) override { return unsupported(); }
  bool receive_tagged(const LocalBytes&, std::uint32_t, WireOperation&) override { return unsupported(); }

  void end() override { socket_ = net::Descriptor(); }
  int refusal() const override { return refusal_; }
  int descriptor() override { return events_.empty() ? socket_.number() : busy; }

  std::size_t poll(std::span<WireEvent> events) override {
    take_errors();
    std::size_t count = 0;
    for (; count < events.size() && !events_.empty(); ++count) {
      events[count] = events_.front();
      events_.pop_front();
    }
    while (count < events.size() && !receives_.empty() && take_message())
      events[count++] = {.what = WireEvent::What::done, .operation = taken_};
    return count;
  }

 private:
  struct Peer {
    net::Address at;
    int error = 0;  // of a message to it since it was last heard; 0: none
  };
  struct Receive {
    LocalBytes room;
    WireOperation* operation;
  };

  static std::string key_of(const net::Address& e) { return e.text(); }

  static bool unsupported() { throw std::logic_error("datagrams carry plain messages alone"); }

  int sent(const Peer& to, const LocalBytes& b) const {
    constexpr int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    return sendto(socket_.number(), b.data, b.bytes, flags, to.at.raw(), to.at.length) < 0 ? errno : 0;
  }

  Peer* peer_at(const net::Address& e) {
    const auto found = by_address_.find(key_of(e));
    return found == by_address_.end() ? nullptr : &peers_[found->second];
  }

  // True if a message came; taken_ is then the receive whose buffer has it. Skips messages that are empty, or longer
  // than the buffer, as no rank sends those.
  bool take_message() {
    const Receive& r = receives_.front();
    for (int turn = 0; turn < most_refused; ++turn) {
      net::Address from;
      from.length = sizeof from.storage;
      auto* const room = static_cast<std::byte*>(const_cast<void*>(r.room.data));
      const ssize_t got =
          recvfrom(socket_.number(), room, r.room.bytes, MSG_DONTWAIT | MSG_TRUNC, from.raw(), &from.length);
      if (got < 0) return false;
      const auto bytes = static_cast<std::size_t>(got);
      if (bytes == 0 || bytes > r.room.bytes) continue;
      std::fill(room + bytes, room + r.room.bytes, std::byte{});  // clears the rest of an earlier message
      if (Peer* const p = peer_at(from)) p->error = 0;
      taken_ = r.operation;
      receives_.pop_front();
      return true;
    }
    return false;
  }

  // Takes the errors that routers and peers' hosts report for messages. Each names the peer that the message was for.
  void take_errors() {
    for (;;) {
      net::Address to;
      alignas(cmsghdr) std::array<std::byte, 512> about;
      msghdr m = {};
      m.msg_name = to.raw();
      m.msg_namelen = sizeof to.storage;
      m.msg_control = about.data();
      m.msg_controllen = about.size();
      if (recvmsg(socket_.number(), &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
      to.length = m.msg_namelen;
      for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_type != IP_RECVERR && c->cmsg_type != IPV6_RECVERR) continue;
        sock_extended_err e;
        std::memcpy(&e, CMSG_DATA(c), sizeof e);
        if (Peer* const p = peer_at(to); p != nullptr && e.ee_errno != EMSGSIZE)
          p->error = static_cast<int>(e.ee_errno);
      }
    }
  }

  net::Descriptor socket_;
  std::vector<std::byte> address_;
  WireLimits limits_;
  std::vector<Peer> peers_;
  std::unordered_map<std::string, std::size_t> by_address_;
  std::deque<WireEvent> events_;
  std::deque<Receive> receives_;
  WireOperation* taken_ = nullptr;
  int refusal_ = 0;
};

}  // namespace

std::unique_ptr<Wire> open_datagram_wire(std::span<const std::byte> beside) {
  auto at = net::address_in(beside);
  if (!at) return nullptr;
  at->set_port(0);
  net::Descriptor socket = net::bound_to(*at, SOCK_DGRAM);
  if (!socket) return nullptr;
  const int one = 1;
  setsockopt(socket.number(), IPPROTO_IP, IP_RECVERR, &one, sizeof one);
  if (at->family() == AF_INET6) setsockopt(socket.number(), IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof one);
  setsockopt(socket.number(), SOL_SOCKET, SO_RCVBUF, &receive_room, sizeof receive_room);
  const net::Address here = net::local_address(socket);
  return std::make_unique<DatagramWire>(std::move(socket), here);
}

}  // namespace trellis::ccl::libfabric
