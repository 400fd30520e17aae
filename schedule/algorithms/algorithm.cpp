#include "schedule/algorithms/algorithm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <stdexcept>

#include "schedule/builder/program_recorder.h"
#include "schedule/builder/rank_permutation.h"
#include "schedule/collective_traits.h"
#include "schedule/schedule_too_large.h"
#include "text/refuse.h"
#include "text/registry.h"

namespace trellis::schedule {
namespace {

constexpr std::int32_t most_segments = 1 << 16;

text::Registry<Algorithm>& registry() {
  static text::Registry<Algorithm> all("algorithm");
  return all;
}

std::int64_t pieces_of(const Algorithm& algorithm, const Request& request) {
  return algorithm.pieces ? algorithm.pieces(request.in_order()) : 1;
}

// Maps the rank numbers that the algorithm sees to ranks; null if they are the same.
std::shared_ptr<const RankPermutation> names_of(const Request& r) {
  if (!r.numbering.empty()) return std::make_shared<RankPermutation>(r.numbering);
  if (r.order.empty()) return nullptr;
  std::vector<RankPermutation::Dim> dims;
  for (const std::int32_t d : r.order) {
    Rank stride = 1;
    for (std::int32_t i = 0; i < d; ++i) stride *= r.dims[i];
    dims.push_back({r.dims[d], stride});
  }
  return std::make_shared<RankPermutation>(std::move(dims));
}

void check_order(const Request& r) {
  if (r.order.empty()) return;
  std::vector<std::int32_t> sorted = r.order;
  std::ranges::sort(sorted);
  bool each = sorted.size() == r.dims.size();
  for (std::size_t i = 0; each && i < sorted.size(); ++i) each = sorted[i] == static_cast<std::int32_t>(i);
  if (!each)
    text::refuse("order {}: expected each of 0 to {} once, for dims {}", fmt::join(r.order, "."), r.dims.size() - 1,
                 fmt::join(r.dims, "x"));
}

void check_numbering(const Request& r) {
  if (r.numbering.empty()) return;
  if (!r.order.empty())
    text::refuse("order {} and a numbering of {} ranks: expected one of the two", fmt::join(r.order, "."),
                 r.numbering.size());
  const auto ranks = static_cast<std::size_t>(r.ranks());
  if (r.numbering.size() != ranks) text::refuse("a numbering of {} ranks: expected {}", r.numbering.size(), ranks);
  std::vector<bool> seen(ranks);
  for (const Rank rank : r.numbering) {
    if (rank < 0 || rank >= r.ranks() || seen[static_cast<std::size_t>(rank)])
      text::refuse("rank {} in a numbering: expected each of 0 to {} once", rank, r.ranks() - 1);
    seen[static_cast<std::size_t>(rank)] = true;
  }
}

// An explanation if there are more chunks than a Task can number; otherwise empty.
std::string refuses_chunks(const Request& r, std::int64_t pieces) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const std::int64_t blocks = by_block(r.operation.collective) ? r.ranks() : 1;
  if (pieces <= most / blocks) return "";
  return fmt::format("{} channels of {} segments on {} ranks make {} chunks: expected at most {}", r.channels,
                     r.segments, r.ranks(), pieces > most ? pieces : pieces * blocks, most);
}

Task accepted(const Algorithm& algorithm, const Request& request) {
  if (const std::string why = refusal(algorithm, request); !why.empty())
    text::refuse("{} cannot do {} on {}: {}", algorithm.name, name(request.operation.collective),
                 fmt::join(request.dims, "x"), why);
  return task_of(algorithm, request);
}

}  // namespace

std::string refuses_shares(const Request& r, std::string_view reason) {
  if (r.channels > 1) return fmt::format("{} channels: expected 1, {}", r.channels, reason);
  if (r.segments > 1) return fmt::format("{} segments: expected 1, {}", r.segments, reason);
  return "";
}

Symmetry rotated(const Request& r) {
  return {{{rooted(r.operation.collective) ? SymmetryAxis::Kind::distinct : SymmetryAxis::Kind::rotate, r.ranks()}}};
}

Symmetry flipped(const Request& r) {
  const bool alike = !rooted(r.operation.collective) && std::has_single_bit(static_cast<std::uint32_t>(r.ranks()));
  return {{{alike ? SymmetryAxis::Kind::flip : SymmetryAxis::Kind::distinct, r.ranks()}}};
}

Task conditions(const Request& r, std::int32_t pieces) {
  return {.operation = r.operation, .ranks = r.ranks(), .pieces = pieces};
}

Rank Request::ranks() const {
  std::int64_t n = 1;
  for (Rank d : dims) {
    if (d < 1) text::refuse("dimension {} in {}: expected at least 1", d, fmt::join(dims, "x"));
    n *= d;
    if (n > std::numeric_limits<Rank>::max() / 2) text::refuse("dims {} make too many ranks", fmt::join(dims, "x"));
  }
  return static_cast<Rank>(n);
}

Request Request::in_order() const {
  if (order.empty() && numbering.empty()) return *this;
  check_order(*this), check_numbering(*this);
  Request seen = *this;
  seen.order.clear(), seen.numbering.clear();
  for (std::size_t i = 0; i < order.size(); ++i) seen.dims[i] = dims[order[i]];
  const auto names = names_of(*this);
  const auto renamed = [&](Rank& r) { r = names->inner(r); };
  const Collective collective = operation.collective;
  if (rooted(collective) || collective == Collective::send_recv) renamed(seen.operation.root);
  if (collective == Collective::send_recv) renamed(seen.operation.peer);
  for (Pair& pair : seen.operation.pairs) renamed(pair.source), renamed(pair.target);
  return seen;
}

RegisteredAlgorithm::RegisteredAlgorithm(Algorithm algorithm) { registry().add(std::move(algorithm)); }

const std::map<std::string, Algorithm, std::less<>>& algorithms() { return registry().entries(); }

const Algorithm& algorithm_named(std::string_view wanted) { return registry().named(wanted); }

void check(const Request& r) {
  if (r.dims.empty()) throw std::invalid_argument("no dims: expected at least one, as in 8 or 4x4");
  if (r.channels < 1 || r.channels > most_channels)
    text::refuse("{} channels: expected 1 to {}", r.channels, most_channels);
  if (r.segments < 1 || r.segments > most_segments)
    text::refuse("{} segments: expected 1 to {}", r.segments, most_segments);
  check_order(r), check_numbering(r);
  check(conditions(r, 1));
}

std::string refusal(const Algorithm& algorithm, const Request& request) {
  if (request.operation.in_place && counts_by_pair(request.operation.collective))
    return "in place, the blocks sent and received would overlap at different sizes";
  check(request);
  if (!request.levels.empty() && !algorithm.has_levels)
    return fmt::format("it has no levels, and {} are given", request.levels.size());
  if (std::ranges::find(algorithm.serves, request.operation.collective) == algorithm.serves.end())
    return "it serves other collectives";
  const std::string why = algorithm.refuses ? algorithm.refuses(request.in_order()) : "";
  return why.empty() ? refuses_chunks(request, pieces_of(algorithm, request)) : why;
}

Task task_of(const Algorithm& algorithm, const Request& request) {
  const std::int64_t pieces = pieces_of(algorithm, request);
  if (const std::string why = refuses_chunks(request, pieces); !why.empty()) throw ScheduleTooLarge(why);
  Task task = conditions(request, static_cast<std::int32_t>(pieces));
  task.even = algorithm.even && algorithm.even(request.in_order());
  check(task);
  return task;
}

// Some ranks do little, such as the leaves of a tree. The smallest step count of three ranks is therefore taken as
// every rank's. With few ranks, this check would take as long as writing the schedule.
void expect_writable(const Algorithm& algorithm, const Request& request, std::int64_t most_steps) {
  constexpr Rank few = 256;
  const Rank ranks = request.ranks();
  if (ranks < few) return;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Rank r : {Rank{0}, ranks / 3, ranks - 1}) {
    std::int64_t steps = 0;
    watch_program(algorithm, request, r, [&](const Program&) { return ++steps <= most_steps / ranks * 16; });
    least = std::min(least, steps);
    if (least <= most_steps / ranks) return;
  }
  const double steps = static_cast<double>(least) * ranks;
  throw ScheduleTooLarge(
      fmt::format("{} on {} takes at least {:.0f} steps, which need {:.3g} GB of memory; up to {} are written out: try "
                  "fewer ranks, or an algorithm of fewer messages such as bruck",
                  algorithm.name, fmt::join(request.dims, "x"), steps, steps * sizeof(Step) * 1e-9, most_steps));
}

Schedule make(const Algorithm& algorithm, const Request& request) {
  expect_writable(algorithm, request, most_steps_written);
  ProgramRecorder recorder(accepted(algorithm, request));
  Builder builder(recorder, request.ranks());
  build(algorithm, request, builder);
  Schedule schedule{.task = recorder.task(), .algorithm = algorithm.name, .programs = recorder.finish()};
  schedule.channels = recorder.channels();
  return schedule;
}

Program make_program(const Algorithm& algorithm, const Request& request, Rank rank) {
  ProgramRecorder recorder(accepted(algorithm, request), rank);
  Builder builder(recorder, request.ranks());
  build(algorithm, request, builder);
  return std::move(recorder.finish().front());
}

bool watch_program(const Algorithm& algorithm, const Request& request, Rank rank,
                   const std::function<bool(const Program&)>& watch) try {
  ProgramRecorder recorder(accepted(algorithm, request), rank, watch);
  Builder builder(recorder, request.ranks());
  build(algorithm, request, builder);
  recorder.finish();
  return true;
} catch (const ProgramRecorder::Unwanted&) {
  return false;
}

// If the request has an order or a numbering, the algorithm writes to a SubMachine that is the whole machine with ranks
// renamed. Blocks are renamed like their ranks.
void build(const Algorithm& algorithm, const Request& request, Builder& b) {
  SubMachine part{.count = request.ranks(), .names = names_of(request)};
  if (!part.names) return algorithm.build(request, b);
  const Request seen = request.in_order();
  if (by_block(request.operation.collective)) {
    const std::int64_t pieces = pieces_of(algorithm, request);
    part.data.digits = {{pieces, 1}, {part.count, pieces}};
    part.data.names = part.names;
  }
  part.input = part.output = part.data;
  part.input.region = Region::input, part.output.region = Region::output;
  Builder inner = b.part(part);
  algorithm.build(seen, inner);
}

bool joins_blocks(const Algorithm& algorithm, const Request& request) {
  return by_block(request.operation.collective) && algorithm.joins_blocks && algorithm.joins_blocks(request.in_order());
}

// If the algorithm's axes are the dimensions that it sees, they are permuted back to the machine's order. No symmetry
// is promised if they are not, if ranks are renumbered, or if the order scatters blocks that a message carries as one
// run.
Symmetry symmetry_of(const Algorithm& algorithm, const Request& request) {
  const Symmetry distinct{{{SymmetryAxis::Kind::distinct, request.ranks()}}};
  if (!algorithm.symmetry || !std::ranges::is_sorted(request.numbering)) return distinct;
  const Request seen = request.in_order();
  Symmetry found = algorithm.symmetry(seen);
  if (request.order.empty() || std::ranges::is_sorted(request.order)) return found;
  if (joins_blocks(algorithm, request)) return distinct;
  if (!std::ranges::equal(found.axes, seen.dims, {}, &SymmetryAxis::size)) return distinct;
  const std::vector<SymmetryAxis> axes = found.axes;
  for (std::size_t i = 0; i < axes.size(); ++i) found.axes[request.order[i]] = axes[i];
  return found;
}

Schedule make(std::string_view algorithm, const Request& request) { return make(algorithm_named(algorithm), request); }

}  // namespace trellis::schedule
