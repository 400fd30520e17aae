#include "ccl/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trellis::ccl {
namespace {

Place address(const void* data, std::size_t bytes) {
  return {schedule::Buffer::input, reinterpret_cast<std::uintptr_t>(data), bytes};
}

std::string text_of(const Point& p) { return fmt::format("{} {}", p.count, kernels::name(p.type)); }

bool is_own(const Point& p, Rank rank) { return p.from == rank && p.to == rank; }
bool is_empty(const Point& p) { return p.count == 0; }  // whichever way it goes
bool sends_own(const Point& p, Rank rank) { return is_own(p, rank) && (p.input != nullptr || is_empty(p)); }
bool receives_own(const Point& p, Rank rank) { return is_own(p, rank) && (p.output != nullptr || is_empty(p)); }

// Sends of a rank to itself meet its receives in order.
template <class Met>
void each_own(std::span<const Point> points, Rank rank, Met met) {
  auto receives = points.begin();
  for (const Point& p : points) {
    if (!sends_own(p, rank)) continue;
    receives = std::find_if(receives, points.end(), [&](const Point& r) { return receives_own(r, rank); });
    met(p, *receives++);
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

void check_own(std::span<const Point> points, Rank rank) {
  const auto sends = std::ranges::count_if(points, [&](const Point& p) { return sends_own(p, rank); });
  const auto receives = std::ranges::count_if(points, [&](const Point& p) { return receives_own(p, rank); });
  if (sends != receives)
    throw std::invalid_argument(
        fmt::format("rank {} sends to itself {} times and receives {} times in a group", rank, sends, receives));
  each_own(points, rank, [&](const Point& sent, const Point& received) {
    if (sent.count != received.count || sent.type != received.type)
      throw std::invalid_argument(
          fmt::format("rank {} sends itself {} where it receives {}", rank, text_of(sent), text_of(received)));
  });
}

Compiled compile_points(std::span<const Point> points, Rank rank, int lane) {
  check_own(points, rank);
  Compiled out;
  std::vector<std::pair<std::pair<bool, Rank>, std::uint32_t>> lined;  // steps by whether they receive, and the peer
  for (const Point& p : points) {
    const std::size_t bytes = p.count * kernels::size_of(p.type);
    const bool sends = p.from == rank, receives = p.to == rank;
    if (sends == receives) continue;
    FlatStep step;
    step.op = sends ? schedule::Op::send : schedule::Op::recv;
    (sends ? step.from : step.to) = address(sends ? p.input : p.output, bytes);
    step.origin = static_cast<std::int32_t>(out.steps.size());
    step.mark = static_cast<std::uint32_t>(p.type);
    lined.push_back({{receives, sends ? p.to : p.from}, static_cast<std::uint32_t>(out.steps.size())});
    out.steps.push_back(step);
  }
  each_own(points, rank, [&](const Point& sent, const Point& received) {
    const std::size_t bytes = sent.count * kernels::size_of(sent.type);
    out.first.push_back(static_cast<std::uint32_t>(out.steps.size()));
    out.steps.push_back(
        {.op = schedule::Op::copy, .to = address(received.output, bytes), .from = address(sent.input, bytes)});
  });
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
