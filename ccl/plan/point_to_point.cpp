#include "ccl/plan/point_to_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/refuse.h"

namespace trellis::ccl {
namespace {

BufferRange address(const void* data, std::size_t bytes) {
  return {schedule::Buffer::input, reinterpret_cast<std::uintptr_t>(data), bytes};
}

std::string text_of(const SendRecv& p) { return fmt::format("{} {}", p.count, kernels::name(p.type)); }

// Whether the rank sends this message to itself. Empty messages do not count: they transfer nothing and match nothing.
bool is_own(const SendRecv& p, Rank rank) { return p.from == rank && p.to == rank && p.count != 0; }
bool sends_own(const SendRecv& p, Rank rank) { return is_own(p, rank) && p.input != nullptr; }
bool receives_own(const SendRecv& p, Rank rank) { return is_own(p, rank) && p.output != nullptr; }

// Calls met(send, receive) for each message of a rank to itself: its sends match its receives in order.
template <class Met>
void each_own(std::span<const SendRecv> points, Rank rank, Met met) {
  auto receives = points.begin();
  for (const SendRecv& p : points) {
    if (!sends_own(p, rank)) continue;
    receives = std::find_if(receives, points.end(), [&](const SendRecv& r) { return receives_own(r, rank); });
    met(p, *receives++);
  }
}

}  // namespace

Call call_of(const SendRecv& p) {
  return {.operation = {.collective = Collective::send_recv, .root = p.from, .peer = p.to},
          .input = p.input,
          .output = p.output,
          .count = p.count,
          .type = p.type};
}

bool plainly_right(const SendRecv& p, Rank rank, Rank ranks) {
  constexpr std::size_t far_too_many = std::size_t{1} << 48;
  const auto in = reinterpret_cast<std::uintptr_t>(p.input), out = reinterpret_cast<std::uintptr_t>(p.output);
  const std::uintptr_t place = p.from != p.to ? (p.from == rank ? in : out) : in | out;
  return p.from >= 0 && p.to >= 0 && p.from < ranks && p.to < ranks && place != 0 && (in | out) < far_too_many &&
         p.count < far_too_many && static_cast<std::size_t>(p.type) < kernels::dtype_count;
}

std::optional<kernels::DType> type_of_hash(std::uint32_t mark) {
  if (mark < send_recv_hash || mark - send_recv_hash >= kernels::dtype_count) return std::nullopt;
  return static_cast<kernels::DType>(mark - send_recv_hash);
}

void check_own(std::span<const SendRecv> points, Rank rank) {
  const auto sends = std::ranges::count_if(points, [&](const SendRecv& p) { return sends_own(p, rank); });
  const auto receives = std::ranges::count_if(points, [&](const SendRecv& p) { return receives_own(p, rank); });
  if (sends != receives)
    text::refuse("rank {} sends to itself {} times and receives {} times in a group", rank, sends, receives);
  each_own(points, rank, [&](const SendRecv& sent, const SendRecv& received) {
    if (sent.count != received.count || sent.type != received.type)
      text::refuse("rank {} sends itself {} where it receives {}", rank, text_of(sent), text_of(received));
  });
}

CompiledProgram compile_send_recvs(std::span<const SendRecv> points, Rank rank, int lane) {
  check_own(points, rank);
  CompiledProgram out;
  std::vector<std::pair<std::pair<bool, Rank>, std::uint32_t>> lined;  // steps by direction (true: send) and peer
  for (const SendRecv& p : points) {
    const std::size_t bytes = p.count * kernels::size_of(p.type);
    const bool sends = p.from == rank, receives = p.to == rank;
    if (sends == receives) continue;
    CompiledStep step;
    step.op = sends ? schedule::Op::send : schedule::Op::recv;
    (sends ? step.from : step.to) = address(sends ? p.input : p.output, bytes);
    step.origin = static_cast<std::int32_t>(out.steps.size());
    step.mark = static_cast<std::uint32_t>(p.type);
    lined.push_back({{sends, sends ? p.to : p.from}, static_cast<std::uint32_t>(out.steps.size())});
    out.steps.push_back(step);
  }
  each_own(points, rank, [&](const SendRecv& sent, const SendRecv& received) {
    const std::size_t bytes = sent.count * kernels::size_of(sent.type);
    out.first.push_back(static_cast<std::uint32_t>(out.steps.size()));
    out.steps.push_back(
        {.op = schedule::Op::copy, .to = address(received.output, bytes), .from = address(sent.input, bytes)});
  });
  out.ahead.resize(out.steps.size());
  std::sort(lined.begin(), lined.end());
  for (std::size_t i = 0; i < lined.size(); ++i) {
    const auto& [sends, peer] = lined[i].first;
    if (i == 0 || lined[i - 1].first != lined[i].first)
      out.lines.push_back({peer, lane, !sends, static_cast<std::uint32_t>(i), 0});
    ++out.lines.back().count;
    out.messages.push_back(lined[i].second);
  }
  return out;
}

}  // namespace trellis::ccl
