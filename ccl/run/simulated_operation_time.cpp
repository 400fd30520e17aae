#include "ccl/run/simulated_operation_time.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/plan/schedule_file.h"

namespace trellis::ccl {
namespace {

std::size_t bytes_of(const SendRecv& p) { return p.count * kernels::size_of(p.type); }

}  // namespace

SimulatedOperationTime::SimulatedOperationTime(device::Device& device, const DeviceAgreement& agreement, Rank rank,
                                               Rank ranks)
    : device_(device), time_(ranks > 1 ? device.simulated_time() : nullptr), agreement_(agreement), rank_(rank) {}

void SimulatedOperationTime::begin(const Call& c, const CallPlan& planned, bool in_place) {
  if (time_ == nullptr) return;
  if (planned.config == nullptr || is_file(*planned.config))
    throw device::Unsupported(
        fmt::format("{}: the time of a schedule that the caller supplies is not known", device_.name()));
  const std::string algorithm = text_of(*planned.config);
  time_->spend(agreement_.run_of(c, algorithm, in_place));
  hold();
}

std::span<const SendRecv> SimulatedOperationTime::with_clocks(std::span<const SendRecv> points) {
  if (time_ == nullptr) return points;
  own_ = time_->now();
  senders_.assign(points.size(), own_);
  messages_.clear();
  largest_ = {};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SendRecv& p = points[i];
    if (p.from != p.to) {
      messages_.push_back({.input = p.from == rank_ ? &own_ : nullptr,
                           .output = p.to == rank_ ? &senders_[i] : nullptr,
                           .count = sizeof own_,
                           .type = kernels::DType::u8,
                           .from = p.from,
                           .to = p.to});
      if (largest_.from == largest_.to || bytes_of(p) > bytes_of(largest_)) largest_ = p;
    }
    messages_.push_back(p);
  }
  return messages_;
}

// A group's messages all move at once: they start when the last of their senders sends, and take as long as the
// largest.
void SimulatedOperationTime::end_messages() {
  end();
  if (time_ == nullptr || largest_.from == largest_.to) return;
  device::RankClock from = own_, to = own_;
  const bool sends = largest_.from == rank_;
  (sends ? to : from).core = agreement_.core_of(sends ? largest_.to : largest_.from);
  for (std::size_t i = 0, at = 0; at < messages_.size(); ++i, ++at) {
    if (messages_[at].from == messages_[at].to) continue;
    from.time = std::max(from.time, senders_[i].time);
    if (messages_[++at] == largest_ && !sends) from.core = senders_[i].core;
  }
  time_->spend({.collective = schedule::name(Collective::send_recv),
                .rank = sends ? 0 : 1,
                .ranks = 2,
                .bytes = bytes_of(largest_),
                .element = kernels::size_of(largest_.type),
                .root = 0,
                .peer = 1,
                .clocks = {from, to}});
}

}  // namespace trellis::ccl
