#include "ccl/transports/libfabric/wire/fault_injection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

namespace trellis::ccl::libfabric {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int stall_once_in = 2000;  // polls

class HostileWire : public Wire {
 public:
  HostileWire(std::unique_ptr<Wire> under, const FaultInjection& h)
      : under_(std::move(under)), h_(h), limits_(under_->limits()), random_(h.seed) {
    if (h.outstanding != 0) limits_.outstanding = static_cast<std::size_t>(h.outstanding);
    if (h.places != 0) limits_.places = static_cast<std::uint32_t>(h.places);
  }

  const WireLimits& limits() const override { return limits_; }
  std::span<const std::byte> address() const override { return under_->address(); }
  fi_addr_t know(std::span<const std::byte> address) override { return under_->know(address); }
  std::unique_ptr<Region> region(const Memory& m, bool for_peers) override { return under_->region(m, for_peers); }
  bool inject(fi_addr_t to, const void* data, std::size_t bytes) override {
    if (!room()) return false;
    as_a_former_self(to, data, bytes);
    return under_->inject(to, data, bytes);
  }
  bool send(fi_addr_t to, const Local& b, Operation& op) override {
    if (!room()) return false;
    as_a_former_self(to, b.data, b.bytes);
    return stuck(op) || failed(op) || counted(under_->send(to, b, op), op);
  }
  bool write(const Target& to, const Local& b, std::uint32_t immediate, Operation& op) override {
    return piece_room() && (stuck(op) || failed(op) || counted(under_->write(to, b, immediate, op), op));
  }
  bool send_tagged(fi_addr_t to, const Local& b, std::uint32_t tag, Operation& op) override {
    return piece_room() && (stuck(op) || failed(op) || counted(under_->send_tagged(to, b, tag, op), op));
  }
  void end() override {
    ended_ = true;
    under_->end();
  }
  bool receive(const Local& b, Operation& op) override { return under_->receive(b, op); }
  bool receive_tagged(const Local& b, std::uint32_t tag, Operation& op) override {
    return under_->receive_tagged(b, tag, op);
  }
  int refusal() const override { return refused_here_ ? 0 : under_->refusal(); }
  int descriptor() override { return held_.empty() ? under_->descriptor() : busy; }

  std::size_t poll(std::span<Event> events) override {
    if (!ended_ && stalled()) return 0;
    std::array<Event, 16> fresh;
    const std::size_t count = under_->poll(fresh);
    for (std::size_t i = 0; i < count; ++i) keep(fresh[i]);
    return release(events);
  }

 private:
  struct Held {
    Event event;
    int polls;
  };
  bool chance(int per_cent) { return per_cent != 0 && static_cast<int>(random_() % 100) < per_cent; }
  bool room() {
    refused_here_ = (h_.credits != 0 && under_way_ >= h_.credits) || chance(h_.refuse);
    return !refused_here_;
  }
  bool piece_room() {
    if (h_.outstanding != 0 && pieces_under_way_ == h_.outstanding)
      throw std::logic_error(
          fmt::format("a piece more than outstanding={} was sent: expected that it waits", h_.outstanding));
    return room();
  }
  // The same message with other contents, and of another communicator: its identity comes first in every message.
  void as_a_former_self(fi_addr_t to, const void* data, std::size_t bytes) {
    constexpr std::size_t identity = 8, head = 40;
    if (bytes > limits().inject || !chance(h_.former)) return;
    std::vector<std::byte> old(bytes);
    std::memcpy(old.data(), data, bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      if (i < identity || i >= head) old[i] = ~old[i];
    under_->inject(to, old.data(), bytes);
  }
  bool stuck(Operation& op) {
    if (h_.stick == 0 || sent_ < h_.stick) return false;
    if (h_.early != 0) {
      begins(op);
      keep({Event::What::done, &op, 0, 0});
    }
    return true;
  }
  bool failed(Operation& op) {
    if (!chance(h_.fail)) return false;
    begins(op);
    keep({Event::What::failed, &op, 0, FI_EIO});
    return true;
  }
  bool counted(bool sent, Operation& op) {
    if (sent) begins(op);
    sent_ += sent ? 1 : 0;
    return sent;
  }
  void begins(const Operation& op) {
    ++under_way_;
    pieces_under_way_ += op.what == Operation::What::piece_out ? 1 : 0;
  }
  bool stalled() {
    if (h_.stall == 0) return false;
    if (Clock::now() < stalled_until_) return true;
    if (random_() % stall_once_in == 0)
      stalled_until_ = Clock::now() + std::chrono::milliseconds(random_() % static_cast<unsigned>(h_.stall) + 1);
    return false;
  }
  void keep(Event e) {
    const bool piece = e.operation != nullptr && e.operation->what == Operation::What::piece_out;
    const bool packet = e.operation != nullptr && e.operation->what == Operation::What::packet_out;
    if (piece || packet) --under_way_;
    if (piece) --pieces_under_way_;
    held_.push_back({e, chance(h_.reorder) ? static_cast<int>(random_() % static_cast<unsigned>(h_.hold)) + 1 : 0});
  }
  std::size_t release(std::span<Event> events) {
    std::size_t count = 0;
    std::erase_if(held_, [&](Held& one) {
      if ((one.polls-- > 0 && !ended_) || count == events.size()) return false;
      events[count++] = one.event;
      return true;
    });
    return count;
  }

  std::unique_ptr<Wire> under_;
  const FaultInjection h_;
  WireLimits limits_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
  int under_way_ = 0, pieces_under_way_ = 0, sent_ = 0;
  bool refused_here_ = false, ended_ = false;
  Clock::time_point stalled_until_ = {};
};

}  // namespace

FaultInjection hostility_in(const std::string& text) {
  FaultInjection h;
  const std::pair<std::string_view, int*> numbers[] = {{"reorder", &h.reorder},
                                                       {"hold", &h.hold},
                                                       {"refuse", &h.refuse},
                                                       {"only", &h.only},
                                                       {"control", &h.control},
                                                       {"credits", &h.credits},
                                                       {"fail", &h.fail},
                                                       {"stall", &h.stall},
                                                       {"stick", &h.stick},
                                                       {"early", &h.early},
                                                       {"former", &h.former},
                                                       {"places", &h.places},
                                                       {"outstanding", &h.outstanding}};
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    std::uint64_t value = 0;
    const char* const end = part.data() + part.size();
    const auto read = std::from_chars(equals == part.npos ? end : part.data() + equals + 1, end, value);
    bool known = name == "seed";
    if (known) h.seed = value;
    for (const auto& [word, number] : numbers)
      if (word == name) {
        known = true;
        *number = static_cast<int>(std::min<std::uint64_t>(value, 1'000'000));
      }
    if (!known || read.ec != std::errc{} || read.ptr != end)
      throw std::invalid_argument(
          fmt::format("'{}' is no part of a fabric's hostility: expected NAME=NUMBER with seed, reorder, hold, refuse, "
                      "only, control, credits, outstanding, places, fail, former, stick, early or stall",
                      part));
  }
  if (h.hold < 1) throw std::invalid_argument(fmt::format("hold={}: expected 1 or more", h.hold));
  return h;
}

std::unique_ptr<Wire> hostile(std::unique_ptr<Wire> under, const FaultInjection& h) {
  return std::make_unique<HostileWire>(std::move(under), h);
}

}  // namespace trellis::ccl::libfabric
