#include "ccl/transports/libfabric/control/control_link.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "ccl/thread_without_signals.h"
#include "ccl/transports/libfabric/data/packet.h"
#include "ccl/transports/libfabric/presence/gossip_neighbours.h"
#include "ccl/transports/libfabric/wire/address_list.h"
#include "ccl/transports/libfabric/wire/open_wire.h"
#include "ccl/transports/membership_notice.h"
#include "net/address.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto nap = 3ms;
constexpr std::size_t posted_receives = 64;
constexpr std::size_t most_packets = std::size_t{1} << 16;
constexpr std::size_t most_retired = 64;
constexpr std::size_t most_address_bytes = 512, most_note_bytes = 256;
constexpr std::size_t most_relayed_bytes = std::size_t{24} << 10;

}  // namespace

ControlLink::ControlLink(const FabricSettings& s) : rails_(s.rails), checks_(s.checksum) {
  for (int rail = 0; rail < std::min(s.rails, most_wires); ++rail) wires_.push_back(open_control_wire(s, rail));
  listens_ = wires_.front()->limits().listens;
  auto datagrams = open_control_datagrams(s, wires_.front()->address());
  datagrams_ = datagrams != nullptr;
  if (datagrams_) wires_.push_back(std::move(datagrams));
}

ControlPaths ControlLink::paths() const {
  const auto all = static_cast<int>(wires_.size());
  return {.all = all, .datagrams = datagrams_ ? all - 1 : -1};
}

ControlLink::~ControlLink() {
  {
    const std::lock_guard lock(sleep_mutex_);
    ends_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const auto& wire : wires_) wire->end();  // ends the operations under way before their buffers are freed
  sent_.clear();
  paths_.clear();  // frees the packet buffers before the wires that they are registered with
  wires_.clear();
}

std::string ControlLink::terms() const {
  const WireLimits& l = wires_.front()->limits();
  return fmt::format("version {} over {} by {}, {} rail{}, {} checksums", protocol_version, l.provider,
                     l.writes ? "remote writes" : "tagged messages", rails_, rails_ == 1 ? "" : "s",
                     checks_ ? "with" : "without");
}

std::vector<std::byte> ControlLink::address() const { return address_list(wires_); }

void ControlLink::begin(std::vector<Member> members, const MessageAuthenticator& seal) {
  members_ = std::move(members);
  seal_ = seal;
  const auto ranks = static_cast<Rank>(members_.size());
  const std::size_t of_one = sizeof(MessageAuthenticator::Head) + sizeof(PublicStateHeader) + most_notice_bytes(ranks);
  const std::size_t of_others = is_large(ranks) ? std::min(most_relayed_bytes, of_one * members_.size()) : 0;
  for (const auto& wire : wires_) {
    const std::size_t alone = of_one + most_address_bytes + most_note_bytes;
    const std::size_t bytes = std::max(alone, std::min(alone + of_others, wire->limits().message));
    PathState& p = paths_.emplace_back();
    p.addresses.assign(members_.size(), FI_ADDR_UNSPEC);
    p.pool = std::make_unique<PacketPool>(*wire, bytes, most_packets);
    for (std::size_t i = 0; i < posted_receives; ++i) p.to_post.push_back(p.pool->take(WireOperation::What::packet_in));
  }
  post_receives();
  thread_ = thread_without_signals([this] { run(); });
}

void ControlLink::post_receives() {
  for (std::size_t i = 0; i < wires_.size(); ++i) {
    PathState& p = paths_[i];
    while (!p.to_post.empty()) {
      PacketBuffer* const b = p.to_post.back();
      if (!wires_[i]->receive({b->data, p.pool->packet_bytes(), b->descriptor}, *b)) break;
      p.to_post.pop_back();
    }
  }
}

void ControlLink::add(const std::shared_ptr<Presence>& p) {
  const std::lock_guard lock(presences_mutex_);
  presences_[p->roster().identity()] = p;
}

void ControlLink::retire(const std::shared_ptr<Presence>& p) {
  p->retire();
  const std::lock_guard lock(presences_mutex_);
  retired_.push_back(p->roster().identity());
  if (retired_.size() <= most_retired) return;
  presences_.erase(retired_.front());
  retired_.erase(retired_.begin());
}

void ControlLink::flush(Presence& p, Deadline deadline) {
  try {
    for (; p.has_to_tell() && Clock::now() < deadline; usleep(100)) move_if_free();
  } catch (const std::exception&) {  // the communicator ends anyway
  }
}

std::shared_ptr<Presence> ControlLink::presence_of(std::uint64_t identity) {
  const std::lock_guard lock(presences_mutex_);
  const auto found = presences_.find(identity);
  return found == presences_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Presence>> ControlLink::all() {
  const std::lock_guard lock(presences_mutex_);
  std::vector<std::shared_ptr<Presence>> copies;
  for (const auto& [identity, p] : presences_) copies.push_back(p);
  return copies;
}

void ControlLink::wake() {
  {
    const std::lock_guard lock(sleep_mutex_);
    woken_ = true;
  }
  wakes_.notify_all();
}

// A failure here will also fail the next operation; the thread goes on, so that peers still hear of this process.
void ControlLink::run() {
  for (;;) {
    std::exception_ptr failure;
    try {
      move_if_free();
      for (const auto& p : all()) p->progress();
    } catch (...) {
      failure = std::current_exception();
    }
    std::unique_lock lock(sleep_mutex_);
    if (failure) failure_ = failure;
    wakes_.wait_for(lock, nap, [&] { return woken_ || ends_; });
    woken_ = false;
    if (ends_) return;
  }
}

void ControlLink::progress() {
  {
    const std::lock_guard lock(sleep_mutex_);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  move_if_free();
}

void ControlLink::move_if_free() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) move();
}

void ControlLink::move() {
  for (int path = 0; path < paths().all; ++path) move(path);
  heed_knocks();
  for (const auto& p : all())
    for (const Rank r : p->take_owed()) tell(p, r);
}

void ControlLink::move(int path) {
  const auto at = static_cast<std::size_t>(path);
  std::array<WireEvent, 16> events;
  for (;;) {
    const std::size_t count = wires_[at]->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      auto* const b = static_cast<PacketBuffer*>(events[i].operation);
      if (b == nullptr) continue;
      if (b->what == WireOperation::What::packet_in) {
        if (events[i].what == WireEvent::What::done) take(*b, path);
        paths_[at].to_post.push_back(b);
      } else if (const auto found = sent_.find(b); found != sent_.end()) {
        const auto& [presence, to] = found->second;
        presence->sent(to, path, events[i].error);
        if (path == paths().datagrams && events[i].error == ECONNREFUSED) knock(presence->roster().place(to));
        sent_.erase(found);
        paths_[at].pool->give(b);
      }
    }
    post_receives();
    if (count < events.size()) break;
  }
}

void ControlLink::take(const PacketBuffer& b, int path) {
  PublicState s;
  const auto told = seal_->open({b.data, b.pool->packet_bytes()});
  const bool well = !told.empty() && read_public(told, s);
  const auto p = well ? presence_of(s.head.communicator) : nullptr;
  if (!well || (p && !p->hear(s, path))) ++dropped_;
}

// Called when a datagram to the peer was refused, because nobody listens at its address any more or a firewall refuses
// it: tries to connect to its process, to find out whether that still runs.
void ControlLink::knock(std::size_t place) {
  const auto addresses = addresses_in(members_[place].address);
  if (!listens_ || addresses.empty()) return;
  if (const auto at = net::address_in(addresses.front())) knocks_.begin(place, *at);
}

void ControlLink::heed_knocks() {
  for (const std::size_t place : knocks_.refused())
    for (const auto& p : all())
      if (const auto r = p->roster().rank_at(place)) p->lock().detector().refused(*r, Clock::now());
}

void ControlLink::tell(const std::shared_ptr<Presence>& p, Rank r) {
  const int number = p->lock().queue().path(r);
  const std::size_t place = p->roster().place(r);
  PathState& path = paths_[static_cast<std::size_t>(number)];
  Wire& wire = *wires_[static_cast<std::size_t>(number)];
  fi_addr_t& to = path.addresses[place];
  if (to == FI_ADDR_UNSPEC) {
    const auto addresses = addresses_in(members_[place].address);
    if (static_cast<std::size_t>(number) >= addresses.size()) {  // the peer has fewer rails
      p->sent(r, number, FI_EADDRNOTAVAIL);
      return p->lock().queue().put_off(r);
    }
    to = wire.know(addresses[static_cast<std::size_t>(number)], static_cast<std::uint32_t>(place));
  }
  PacketBuffer* const b = path.pool->take(WireOperation::What::packet_out);
  if (b == nullptr) return p->lock().queue().put_off(r);
  constexpr std::size_t sealed = sizeof(MessageAuthenticator::Head);
  const std::size_t room = path.pool->packet_bytes() - sealed;
  const std::size_t bytes = sealed + std::min(room, p->write_for(r, number, room, letter_));
  std::copy_n(letter_.begin(), bytes - sealed, b->data + sealed);
  seal_->close({b->data, bytes});
  if (wire.send(to, {b->data, bytes, b->descriptor}, *b)) {
    sent_[b] = {p, r};
    return p->sending(r, number);
  }
  path.pool->give(b);
  if (const int error = wire.refusal(); error != 0) p->sent(r, number, error);
  p->lock().queue().put_off(r);
}

}  // namespace trellis::ccl::libfabric
