#include "ccl/run/device_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ccl/plan/call_check.h"
#include "ccl/plan/planner.h"
#include "ccl/plan/selection_table.h"

namespace trellis::ccl {
namespace {

using device::NativeCollective;

constexpr std::size_t most_reasons = 256;

std::optional<NativeCollective::Kind> kind_of(Collective c) {
  if (c == Collective::all_gather) return NativeCollective::Kind::all_gather;
  if (c == Collective::all_reduce) return NativeCollective::Kind::all_reduce;
  if (c == Collective::reduce_scatter) return NativeCollective::Kind::reduce_scatter;
  return std::nullopt;
}

}  // namespace

// One rank's part of the exchange. If `call` differs, ranks make different calls: then no device runs the collective
// itself, and the messages of a schedule show the mismatch.
struct DeviceAgreement::Told {
  device::RankClock clock;
  device::NativeWorld world;
  std::uint64_t call = 0, can = 0;
};

bool agrees_first(device::Device& d, Rank ranks) {
  return ranks > 1 && (d.simulated_time() != nullptr || d.collectives() != nullptr);
}

DeviceAgreement::DeviceAgreement(device::Device& d, const Config& config, const Transport& transport)
    : device_(d),
      algorithm_(config.algorithm),
      plain_(config.rounding == kernels::Rounding::nearest && config.wire == kernels::DType::f32),
      rank_(transport.rank()),
      ranks_(transport.ranks()),
      needed_(agrees_first(d, ranks_)),
      collectives_(needed_ ? d.collectives() : nullptr) {
  if (collectives_ != nullptr)
    world_ = collectives_->join(
        {transport.identity(), static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(ranks_)});
}

Call DeviceAgreement::exchange(const Call& c, bool supplied) {
  turn_.reset();
  own_refusal_ = collectives_ != nullptr ? refusal(c, supplied) : "";
  if (collectives_ != nullptr && own_refusal_.empty()) {
    turn_ = collectives_->take_turn();
    if (turn_ == nullptr) own_refusal_ = "another communicator's collective runs on the device";
  }
  const std::uint64_t call = c.count << 24 ^ static_cast<std::uint64_t>(c.operation.collective) << 16 ^
                             static_cast<std::uint64_t>(c.type) << 8 ^ static_cast<std::uint64_t>(c.op.kind);
  const Told told{clock_of(device_), world_, call, collectives_ != nullptr && own_refusal_.empty()};
  const std::size_t counts =
      c.operation.collective == Collective::all_to_all_v ? c.counts.size() * sizeof(std::uint64_t) : 0;
  each_ = sizeof told + counts;
  own_.resize(each_);
  std::memcpy(own_.data(), &told, sizeof told);
  if (counts != 0) std::memcpy(own_.data() + sizeof told, c.counts.data(), counts);
  all_.resize(each_ * static_cast<std::size_t>(ranks_));
  native_.reset();
  why_not_ = nullptr;
  return {.operation = {.collective = Collective::all_gather},
          .input = own_.data(),
          .output = all_.data(),
          .count = each_,
          .type = kernels::DType::u8};
}

std::string DeviceAgreement::refusal(const Call& c, bool supplied) {
  const auto kind = kind_of(c.operation.collective);
  const bool reduces = schedule::reduces(c.operation.collective);
  if (supplied) return "the caller supplies the schedule";
  if (!algorithm_.empty()) return fmt::format("the algorithm is set: {}", algorithm_);
  if (!kind) return fmt::format("native collectives have no {}", schedule::name(c.operation.collective));
  if (!plain_) return "the rounding or the type of messages is set";
  if (c.op.kind == kernels::Reduction::scaled_sum && reduces) return "native collectives scale nothing";
  const auto members = static_cast<std::size_t>(ranks_);
  wanted_ = {.kind = *kind,
             .op = reduces && c.op.kind != kernels::Reduction::avg ? c.op.kind : kernels::Reduction::sum,
             .type = c.type,
             .input = c.input,
             .output = c.output,
             .count = *kind == NativeCollective::Kind::reduce_scatter ? c.count * members : c.count,
             .group = std::vector<std::uint32_t>(members),
             .rank = static_cast<std::uint32_t>(rank_),
             .world = world_.size};
  return collectives_->refuses(wanted_);
}

DeviceAgreement::Told DeviceAgreement::told(Rank r) const {
  Told out;
  std::memcpy(&out, all_.data() + static_cast<std::size_t>(r) * each_, sizeof out);
  return out;
}

void DeviceAgreement::conclude() {
  if (collectives_ == nullptr) return;
  const std::string why = own_refusal_.empty() ? refusal_of_others() : own_refusal_;
  if (!why.empty()) {
    turn_.reset();
    why_not_ = kept(why);
    return;
  }
  for (Rank r = 0; r < ranks_; ++r) wanted_.group[static_cast<std::size_t>(r)] = told(r).world.number;
  native_ = wanted_;
}

std::string DeviceAgreement::refusal_of_others() const {
  const Told mine = told(rank_);
  std::set<std::uint32_t> numbers;
  for (Rank r = 0; r < ranks_; ++r) {
    const Told t = told(r);
    if (t.can == 0) return fmt::format("rank {} refuses it", r);
    if (t.call != mine.call) return fmt::format("rank {} makes another call", r);
    if (t.world.identity != mine.world.identity || t.world.size != mine.world.size)
      return fmt::format("rank {} is in another world of its runtime: expected one NEURON_RT_ROOT_COMM_ID for all", r);
    if (!numbers.insert(t.world.number).second) return fmt::format("rank {} has the number of another one", r);
  }
  return {};
}

const std::string* DeviceAgreement::kept(std::string reason) {
  if (reasons_.size() >= most_reasons) reason = "there were too many reasons to keep";
  return &*reasons_.insert(std::move(reason)).first;
}

std::vector<device::RankClock> DeviceAgreement::clocks() const {
  std::vector<device::RankClock> out;
  for (Rank r = 0; r < ranks_; ++r) out.push_back(told(r).clock);
  return out;
}

std::int64_t DeviceAgreement::core_of(Rank r) const { return all_.empty() ? r : told(r).clock.core; }

device::CollectiveSpec DeviceAgreement::run_of(const Call& c, std::string_view config, bool in_place) const {
  device::CollectiveSpec run{.collective = schedule::name(c.operation.collective),
                             .config = config,
                             .rank = rank_,
                             .ranks = ranks_,
                             .bytes = larger_bytes(c, ranks_),
                             .element = kernels::size_of(c.type),
                             .root = c.operation.root,
                             .peer = c.operation.peer,
                             .in_place = in_place,
                             .counts = counts(c),
                             .clocks = clocks()};
  for (const schedule::Pair& p : c.operation.pairs) run.pairs.emplace_back(p.source, p.target);
  return run;
}

std::vector<std::size_t> DeviceAgreement::counts(const Call& c) const {
  if (c.operation.collective != Collective::all_to_all_v) return c.counts;
  const auto ranks = static_cast<std::size_t>(ranks_);
  std::vector<std::size_t> out(ranks * ranks);
  for (std::size_t r = 0; r < ranks; ++r)
    std::memcpy(out.data() + r * ranks, all_.data() + r * each_ + sizeof(Told), ranks * sizeof(std::size_t));
  return out;
}

}  // namespace trellis::ccl
