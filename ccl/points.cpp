#include "ccl/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trellis::ccl {
namespace {

// A part of a message from a rank to itself.
struct Own {
  Place place;
  kernels::DType type;
};

Place address(const void* data, std::size_t bytes) {
  return {schedule::Buffer::input, reinterpret_cast<std::uintptr_t>(data), bytes};
}

std::string text_of(const Own& o) {
  return fmt::format("{} {}", o.place.elements / kernels::size_of(o.type), kernels::name(o.type));
}

void add_own(Compiled& out, const std::vector<Own>& sends, const std::vector<Own>& receives, Rank rank) {
  if (sends.size() != receives.size())
    throw std::invalid_argument(fmt::format("rank {} sends to itself {} times and receives {} times in a group", rank,
                                            sends.size(), receives.size()));
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (sends[i].place.elements != receives[i].place.elements || sends[i].type != receives[i].type)
      throw std::invalid_argument(
          fmt::format("rank {} sends itself {} where it receives {}", rank, text_of(sends[i]), text_of(receives[i])));
    out.first.push_back(static_cast<std::uint32_t>(out.steps.size()));
    out.steps.push_back({.op = schedule::Op::copy, .to = receives[i].place, .from = sends[i].place});
  }
}

}  // namespace

Call call_of(const Point& p) {
  return {.collective = Collective::send_recv,
          .input = p.input,
          .output = p.output,
          .count = p.count,
          .type = p.type,
          .root = p.from,
          .peer = p.to};
}

bool plainly_right(const Point& p, Rank rank, Rank ranks) {
  constexpr std::size_t far_too_many = std::size_t{1} << 48;
  const auto in = reinterpret_cast<std::uintptr_t>(p.input), out = reinterpret_cast<std::uintptr_t>(p.output);
  const std::uintptr_t place = p.from != p.to ? (p.from == rank ? in : out) : in | out;
  return p.from >= 0 && p.to >= 0 && p.from < ranks && p.to < ranks && place != 0 && (in | out) < far_too_many &&
         p.count < far_too_many && static_cast<std::size_t>(p.type) < kernels::dtype_count;
}

std::optional<kernels::DType> type_of_mark(std::uint32_t mark) {
  if (mark < mark_of_points || mark - mark_of_points >= kernels::dtype_count) return std::nullopt;
  return static_cast<kernels::DType>(mark - mark_of_points);
}

Compiled compile_points(std::span<const Point> points, Rank rank, int lane) {
  Compiled out;
  std::vector<std::pair<std::pair<bool, Rank>, std::uint32_t>> lined;  // steps by whether they receive, and the peer
  std::vector<Own> own_sends, own_receives;
  for (const Point& p : points) {
    const std::size_t bytes = p.count * kernels::size_of(p.type);
    const bool sends = p.from == rank, receives = p.to == rank;
    if (sends && receives) {
      if (p.input != nullptr || bytes == 0) own_sends.push_back({address(p.input, bytes), p.type});
      if (p.output != nullptr || bytes == 0) own_receives.push_back({address(p.output, bytes), p.type});
      continue;
    }
    if (!sends && !receives) continue;
    FlatStep step;
    step.op = sends ? schedule::Op::send : schedule::Op::recv;
    (sends ? step.from : step.to) = address(sends ? p.input : p.output, bytes);
    step.origin = static_cast<std::int32_t>(out.steps.size());
    step.mark = static_cast<std::uint32_t>(p.type);
    lined.push_back({{receives, sends ? p.to : p.from}, static_cast<std::uint32_t>(out.steps.size())});
    out.steps.push_back(step);
  }
  add_own(out, own_sends, own_receives, rank);
  out.ahead.resize(out.steps.size());
  std::sort(lined.begin(), lined.end());
  for (std::size_t i = 0; i < lined.size(); ++i) {
    const auto& [receives, peer] = lined[i].first;
    if (i == 0 || lined[i - 1].first != lined[i].first)
      out.lines.push_back({peer, lane, receives, static_cast<std::uint32_t>(i), 0});
    ++out.lines.back().count;
    out.messages.push_back(lined[i].second);
  }
  return out;
}

}  // namespace trellis::ccl
