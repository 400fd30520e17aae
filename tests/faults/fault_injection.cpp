#include "tests/faults/fault_injection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "kernels/types/random.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr int most_refusals = 100;  // in a row, if each try is refused
constexpr std::uint64_t stall_once_in = 100;

// Independent random numbers for one operation: one for each decision.
class Lot {
 public:
  enum Decides : std::uint64_t {
    hold,
    hold_polls,
    late,
    late_polls,
    stall,
    stall_time,
    fails,
    former,
    twice,
    flips,
    bit,
    refusal
  };

  Lot(std::uint64_t seed, const Sent& s)
      : key_(kernels::random_key({.seed = seed, .step = s.number, .tensor = s.name})),
        first_((std::uint64_t{s.peer} << 1 | static_cast<std::uint64_t>(s.kind)) << 16) {}
  std::uint64_t number(std::uint64_t decides) const { return kernels::random_word(key_, first_ + decides); }
  bool chance(std::uint64_t decides, int per_cent) const {
    return number(decides) % 100 < static_cast<std::uint64_t>(per_cent);
  }
  int up_to(std::uint64_t decides, int most) const {  // from 1 on
    return static_cast<int>(number(decides) % static_cast<std::uint64_t>(most)) + 1;
  }

 private:
  kernels::RandomKey key_;
  std::uint64_t first_;  // of this peer's and kind's numbers
};

}  // namespace

Fate fate_of(const FaultInjection& h, const Sent& sent) {
  const Lot lot(h.seed, sent);
  Fate f;
  while (f.refusals < most_refusals && lot.chance(Lot::refusal + static_cast<std::uint64_t>(f.refusals), h.refuse))
    ++f.refusals;
  if (lot.chance(Lot::hold, h.reorder)) f.hold = lot.up_to(Lot::hold_polls, h.hold);
  if (lot.chance(Lot::late, h.reorder)) f.late = lot.up_to(Lot::late_polls, h.hold);
  if (h.stall != 0 && lot.number(Lot::stall) % stall_once_in == 0) f.stall = lot.up_to(Lot::stall_time, h.stall);
  f.fails = lot.chance(Lot::fails, h.fail);
  f.flips = lot.chance(Lot::flips, sent.kind == Sent::Kind::message ? h.flip : h.spoil);
  f.bit = f.flips ? lot.number(Lot::bit) : 0;
  f.twice = sent.kind == Sent::Kind::message && lot.chance(Lot::twice, h.twice);
  f.former = sent.kind == Sent::Kind::message && lot.chance(Lot::former, h.former);
  return f;
}

FaultInjection fault_injection_in(const std::string& text) {
  FaultInjection h;
  const std::pair<std::string_view, int*> numbers[] = {
      {"reorder", &h.reorder}, {"hold", &h.hold},       {"refuse", &h.refuse}, {"only", &h.only},
      {"control", &h.control}, {"credits", &h.credits}, {"fail", &h.fail},     {"stall", &h.stall},
      {"stick", &h.stick},     {"early", &h.early},     {"former", &h.former}, {"flip", &h.flip},
      {"spoil", &h.spoil},     {"twice", &h.twice},     {"places", &h.places}, {"outstanding", &h.outstanding}};
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
      throw std::invalid_argument(fmt::format(
          "'{}' is no part of a fabric's faults: expected NAME=NUMBER with seed, reorder, hold, refuse, "
          "only, control, credits, outstanding, places, fail, former, flip, spoil, twice, stick, early or stall",
          part));
  }
  if (h.hold < 1) throw std::invalid_argument(fmt::format("hold={}: expected 1 or more", h.hold));
  return h;
}

}  // namespace trellis::ccl::libfabric
