#include "ccl/transports/libfabric/presence/control.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "ccl/thread_without_signals.h"
#include "ccl/transports/libfabric/wire/open_wire.h"
#include "ccl/transports/notice.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto nap = 3ms;
constexpr std::size_t posted_receives = 64;
constexpr std::size_t most_packets = std::size_t{1} << 16;
constexpr std::size_t most_retired = 64;
constexpr std::size_t most_address_bytes = 512, most_note_bytes = 256;

}  // namespace

Control::Control(const FabricSettings& s) : wire_(open_wire(s, 0, -1)) {}

Control::~Control() {
  {
    const std::lock_guard lock(sleep_mutex_);
    ends_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
  wire_.reset();  // before the memory of what is under way
}

std::vector<std::byte> Control::address() const {
  const auto a = wire_->address();
  return {a.begin(), a.end()};
}

void Control::begin(std::vector<Member> members) {
  members_ = std::move(members);
  addresses_.assign(members_.size(), FI_ADDR_UNSPEC);
  const std::size_t bytes =
      sizeof(PublicHead) + most_address_bytes + most_note_bytes + most_notice_bytes(static_cast<Rank>(members_.size()));
  pool_ = std::make_unique<PacketPool>(*wire_, bytes, most_packets);
  for (std::size_t i = 0; i < posted_receives; ++i) to_post_.push_back(pool_->take(Operation::What::packet_in));
  post_receives();
  thread_ = thread_without_signals([this] { run(); });
}

void Control::post_receives() {
  while (!to_post_.empty()) {
    PacketBuffer* const b = to_post_.back();
    if (!wire_->receive({b->data, pool_->packet_bytes(), b->descriptor}, *b)) return;
    to_post_.pop_back();
  }
}

void Control::add(const std::shared_ptr<Presence>& p) {
  const std::lock_guard lock(presences_mutex_);
  presences_[p->identity()] = p;
}

void Control::retire(const std::shared_ptr<Presence>& p) {
  const std::lock_guard lock(presences_mutex_);
  retired_.push_back(p->identity());
  if (retired_.size() <= most_retired) return;
  presences_.erase(retired_.front());
  retired_.erase(retired_.begin());
}

void Control::flush(const Presence& p, Deadline deadline) {
  while (p.has_to_tell() && Clock::now() < deadline) {
    progress();
    usleep(100);
  }
}

std::shared_ptr<Presence> Control::presence_of(std::uint64_t identity) {
  const std::lock_guard lock(presences_mutex_);
  const auto found = presences_.find(identity);
  return found == presences_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Presence>> Control::all() {
  const std::lock_guard lock(presences_mutex_);
  std::vector<std::shared_ptr<Presence>> copies;
  for (const auto& [identity, p] : presences_) copies.push_back(p);
  return copies;
}

void Control::wake() {
  {
    const std::lock_guard lock(sleep_mutex_);
    woken_ = true;
  }
  wakes_.notify_all();
}

void Control::run() {
  for (;;) {
    progress();
    for (const auto& p : all()) p->progress();
    std::unique_lock lock(sleep_mutex_);
    wakes_.wait_for(lock, nap, [&] { return woken_ || ends_; });
    woken_ = false;
    if (ends_) return;
  }
}

void Control::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) move();
}

void Control::move() {
  std::array<Event, 16> events;
  for (;;) {
    const std::size_t count = wire_->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      auto* const b = static_cast<PacketBuffer*>(events[i].operation);
      if (b == nullptr) continue;
      if (b->what == Operation::What::packet_in) {
        if (events[i].what == Event::What::done) take(*b);
        to_post_.push_back(b);
      } else if (const auto found = sent_.find(b); found != sent_.end()) {
        found->second.presence->told(found->second.to, events[i].error);
        sent_.erase(found);
        pool_->give(b);
      }
    }
    post_receives();
    if (count < events.size()) break;
  }
  for (const auto& p : all())
    for (const Rank r : p->take_owed()) tell(p, r);
}

void Control::take(const PacketBuffer& b) {
  PublicState s;
  if (!read_public({b.data, pool_->packet_bytes()}, s)) return;
  if (const auto p = presence_of(s.head.communicator)) p->hear(s);
}

void Control::tell(const std::shared_ptr<Presence>& p, Rank r) {
  fi_addr_t& to = addresses_[p->place(r)];
  if (to == FI_ADDR_UNSPEC) to = wire_->know(members_[p->place(r)].address);
  PacketBuffer* const b = pool_->take(Operation::What::packet_out);
  if (b == nullptr) return p->owe(r);
  const std::size_t bytes = p->write_for(r, letter_);
  std::copy_n(letter_.begin(), std::min(bytes, pool_->packet_bytes()), b->data);
  if (wire_->send(to, {b->data, bytes, b->descriptor}, *b)) {
    sent_[b] = {p, r};
    return p->telling(r);
  }
  pool_->give(b);
  if (const int error = wire_->refusal(); error != 0) p->told(r, error);
  p->owe(r);
}

}  // namespace trellis::ccl::libfabric
