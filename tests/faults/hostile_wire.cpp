#include "tests/faults/hostile_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ccl/transports/libfabric/wire/message_kind.h"

namespace trellis::ccl::libfabric {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = Sent::Kind;

bool in_token(std::size_t at) { return at >= token_at && at < token_at + sizeof(std::uint64_t); }

// Whether a byte of a message differs from run to run: the token is random, and how many messages the sender has taken
// depends on timing, as does all of a control message.
bool differs(std::span<const std::byte> message, std::size_t at) {
  const bool taken = at >= taken_at && at < taken_at + sizeof(std::uint32_t);
  return at != 0 && (in_token(at) || taken || static_cast<MessageKind>(message[0]) == MessageKind::state);
}

std::uint64_t name_of(std::span<const std::byte> message) {
  std::string name;
  for (std::size_t i = 0; i < std::min(message.size(), packet_bytes); ++i)
    if (!differs(message, i)) name += std::to_integer<char>(message[i]);
  return std::hash<std::string>()(name);
}

class HostileWire : public Wire {
 public:
  HostileWire(std::unique_ptr<Wire> under, const FaultInjection& h, Fates* met)
      : under_(std::move(under)), h_(h), met_(met), limits_(under_->limits()) {
    if (h.outstanding != 0) limits_.outstanding = static_cast<std::size_t>(h.outstanding);
    if (h.places != 0) limits_.places = static_cast<std::uint32_t>(h.places);
  }

  const WireLimits& limits() const override { return limits_; }
  std::span<const std::byte> address() const override { return under_->address(); }
  fi_addr_t know(std::span<const std::byte> address, std::uint32_t peer) override {
    const fi_addr_t known = under_->know(address, peer);
    peers_[known].number = peer;
    return known;
  }
  std::unique_ptr<MemoryRegion> region(const MemoryDescription& m, bool for_peers) override {
    return under_->region(m, for_peers);
  }
  bool inject(fi_addr_t to, const void* data, std::size_t bytes) override {
    const auto* const from = static_cast<const std::byte*>(data);
    const auto copy = std::make_shared<std::vector<std::byte>>(from, from + bytes);
    return carry({to, nullptr, Kind::message, {copy->data(), bytes}},
                 [this, to, copy](const LocalBytes& b) { return under_->inject(to, b.data, b.bytes); });
  }
  bool send(fi_addr_t to, const LocalBytes& b, WireOperation& op) override {
    return carry({to, &op, Kind::message, b}, [this, to, &op](const LocalBytes& l) { return under_->send(to, l, op); });
  }
  bool write(const WriteTarget& to, const LocalBytes& b, std::uint32_t immediate, WireOperation& op) override {
    check_outstanding();
    return carry({to.peer, &op, Kind::piece, b},
                 [this, to, immediate, &op](const LocalBytes& l) { return under_->write(to, l, immediate, op); });
  }
  bool send_tagged(fi_addr_t to, const LocalBytes& b, std::uint32_t tag, WireOperation& op) override {
    check_outstanding();
    return carry({to, &op, Kind::piece, b},
                 [this, to, tag, &op](const LocalBytes& l) { return under_->send_tagged(to, l, tag, op); });
  }
  void end() override {
    ended_ = true;
    waiting_.clear();
    under_->end();
  }
  bool receive(const LocalBytes& b, WireOperation& op) override { return under_->receive(b, op); }
  bool receive_tagged(const LocalBytes& b, std::uint32_t tag, WireOperation& op) override {
    return under_->receive_tagged(b, tag, op);
  }
  int refusal() const override { return refused_here_ ? 0 : under_->refusal(); }
  int descriptor() override { return held_.empty() && waiting_.empty() ? under_->descriptor() : busy; }

  std::size_t poll(std::span<WireEvent> events) override {
    if (!ended_ && Clock::now() < stalled_until_) return 0;
    carry_waiting();
    std::array<WireEvent, 16> fresh;
    const std::size_t count = under_->poll(fresh);
    for (std::size_t i = 0; i < count; ++i)
      if (!is_own(fresh[i])) keep(fresh[i]);
    return release(events);
  }

 private:
  using Post = std::function<bool(const LocalBytes&)>;
  struct Named {
    std::uint64_t sent = 0;
    int refused = 0;  // refused tries of the next operation of this name
  };
  struct Peer {
    std::uint32_t number = 0;
    int sent = 0;
    std::map<std::pair<Kind, std::uint64_t>, Named> by_name;
  };
  struct Wanted {  // an operation that the wire's user asks for
    fi_addr_t to = FI_ADDR_UNSPEC;
    WireOperation* operation = nullptr;  // null: it has no completion
    Kind kind = Kind::message;
    LocalBytes local;
    std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(local.data), local.bytes}; }
  };
  // A message that this wire sends by itself.
  struct Own : WireOperation {
    std::vector<std::byte> bytes;
  };
  struct Held {
    WireEvent event;
    int polls;
  };
  struct Waiting {
    WireOperation* operation;
    Post post;
    LocalBytes local;
    int polls;
  };

  void check_outstanding() const {
    if (h_.outstanding != 0 && pieces_under_way_ == h_.outstanding)
      throw std::logic_error(
          fmt::format("a piece more than outstanding={} was sent: expected that it waits", h_.outstanding));
  }

  bool carry(const Wanted& w, const Post& post) {
    Peer& peer = peers_[w.to];
    const std::uint64_t name = w.kind == Kind::piece ? w.local.bytes : name_of(w.bytes());
    Named& alike = peer.by_name[{w.kind, name}];
    const Sent which{peer.number, w.kind, name, alike.sent};
    refused_here_ = h_.credits != 0 && under_way_ >= h_.credits;
    if (refused_here_) return false;
    const Fate fate = fate_of(h_, which);
    refused_here_ = alike.refused < fate.refusals;
    if (refused_here_) {
      ++alike.refused;
      return false;
    }
    const bool stuck = h_.stick != 0 && peer.sent >= h_.stick;
    const bool fails = fate.fails && w.operation != nullptr;
    const bool now = !stuck && !fails && fate.hold == 0;
    const LocalBytes local = fate.flips ? flipped(w, fate.bit) : w.local;
    if (now && !post(local)) return false;
    ++peer.sent;
    alike = {alike.sent + 1, 0};
    if (met_ != nullptr) met_->emplace(which, fate);
    if (fate.stall != 0) stalled_until_ = Clock::now() + std::chrono::milliseconds(fate.stall);
    if (fate.former) as_a_former_self(w);
    if (fate.twice) send_own(w.to, {w.bytes().begin(), w.bytes().end()});
    if (stuck && h_.early == 0) return true;
    if (w.operation != nullptr) begins(*w.operation, fate.late);
    if (stuck || fails)
      over(w.operation, stuck ? 0 : FI_EIO);
    else if (!now)
      waiting_.push_back({w.operation, post, local, fate.hold});
    return true;
  }

  void carry_waiting() {
    std::erase_if(waiting_, [&](Waiting& one) {
      if (one.polls-- > 0) return false;
      one.polls = 0;
      if (one.post(one.local)) return true;
      const int error = under_->refusal();
      if (error != 0) over(one.operation, error);
      return error != 0;
    });
  }

  // Sends the same message with another token and other contents, as if from a former process at this address.
  void as_a_former_self(const Wanted& w) {
    std::vector<std::byte> old(w.bytes().begin(), w.bytes().end());
    for (std::size_t i = 0; i < old.size(); ++i)
      if (in_token(i) || i >= packet_bytes) old[i] = ~old[i];
    send_own(w.to, std::move(old));
  }

  void send_own(fi_addr_t to, std::vector<std::byte> bytes) {
    own_.emplace_back().bytes = std::move(bytes);
    Own& one = own_.back();
    one.what = WireOperation::What::packet_out;
    if (!under_->send(to, {one.bytes.data(), one.bytes.size(), nullptr}, one)) own_.pop_back();
  }
  bool is_own(const WireEvent& e) const {
    return std::ranges::any_of(own_, [&](const Own& one) { return &one == e.operation; });
  }

  // A copy of the data with one bit changed: the caller's memory stays as it is.
  LocalBytes flipped(const Wanted& w, std::uint64_t bit) {
    if (w.local.bytes == 0) return w.local;
    std::vector<std::byte>& changed = changed_.emplace_back(w.bytes().begin(), w.bytes().end());
    bit %= 8 * changed.size();
    changed[bit / 8] ^= std::byte{1} << bit % 8;
    return {changed.data(), changed.size(), w.local.descriptor};
  }

  void begins(const WireOperation& op, int late) {
    ++under_way_;
    pieces_under_way_ += op.what == WireOperation::What::piece_out ? 1 : 0;
    late_[&op] = late;
  }
  void over(WireOperation* op, int error) {
    if (op != nullptr) keep({error == 0 ? WireEvent::What::done : WireEvent::What::failed, op, 0, error});
  }
  void keep(const WireEvent& e) {
    int polls = 0;
    if (const auto one = late_.find(e.operation); one != late_.end()) {
      --under_way_;
      pieces_under_way_ -= e.operation->what == WireOperation::What::piece_out ? 1 : 0;
      polls = one->second;
      late_.erase(one);
    }
    held_.push_back({e, polls});
  }
  std::size_t release(std::span<WireEvent> events) {
    std::size_t count = 0;
    std::erase_if(held_, [&](Held& one) {
      if ((one.polls-- > 0 && !ended_) || count == events.size()) return false;
      events[count++] = one.event;
      return true;
    });
    return count;
  }

  std::deque<Own> own_;  // this and the next outlive under_, which may still send from them
  std::deque<std::vector<std::byte>> changed_;
  std::unique_ptr<Wire> under_;
  const FaultInjection h_;
  Fates* const met_;
  WireLimits limits_;
  std::unordered_map<fi_addr_t, Peer> peers_;
  std::vector<Waiting> waiting_;                        // to be carried out
  std::vector<Held> held_;                              // ended, to be reported
  std::unordered_map<const WireOperation*, int> late_;  // under way: polls before its end is reported
  int under_way_ = 0, pieces_under_way_ = 0;
  bool refused_here_ = false, ended_ = false;
  Clock::time_point stalled_until_ = {};
};

}  // namespace

std::unique_ptr<Wire> hostile(std::unique_ptr<Wire> under, const FaultInjection& h, Fates* met) {
  return std::make_unique<HostileWire>(std::move(under), h, met);
}

}  // namespace trellis::ccl::libfabric
