#include "schedule/algorithm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <stdexcept>

namespace trellis::schedule {
namespace {

constexpr std::int32_t most_segments = 1 << 16;

std::map<std::string, Algorithm, std::less<>>& table() {
  static std::map<std::string, Algorithm, std::less<>> entries;
  return entries;
}

std::int64_t pieces_of(const Algorithm& algorithm, const Request& request) {
  return algorithm.pieces ? algorithm.pieces(request) : 1;
}

// More chunks than a Task can number, in words; else empty.
std::string refuses_chunks(const Request& r, std::int64_t pieces) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const std::int64_t blocks = by_block(r.collective) ? r.ranks() : 1;
  if (pieces <= most / blocks) return "";
  return fmt::format("{} channels of {} segments on {} ranks make {} chunks: expected at most {}", r.channels,
                     r.segments, r.ranks(), pieces > most ? pieces : pieces * blocks, most);
}

Task conditions(const Request& r, std::int32_t pieces) {
  return {.collective = r.collective,
          .ranks = r.ranks(),
          .root = r.root,
          .peer = r.peer,
          .pairs = r.pairs,
          .in_place = r.in_place,
          .pieces = pieces};
}

Task accepted(const Algorithm& algorithm, const Request& request) {
  if (const std::string why = refusal(algorithm, request); !why.empty())
    throw std::invalid_argument(fmt::format("{} cannot do {} on {}: {}", algorithm.name, name(request.collective),
                                            fmt::join(request.dims, "x"), why));
  return task_of(algorithm, request);
}

}  // namespace

Rank Request::ranks() const {
  std::int64_t n = 1;
  for (Rank d : dims) {
    if (d < 1)
      throw std::invalid_argument(fmt::format("dimension {} in {}: expected at least 1", d, fmt::join(dims, "x")));
    n *= d;
    if (n > std::numeric_limits<Rank>::max() / 2)
      throw std::invalid_argument(fmt::format("dims {} make too many ranks", fmt::join(dims, "x")));
  }
  return static_cast<Rank>(n);
}

Registered::Registered(Algorithm algorithm) {
  const std::string name = algorithm.name;
  if (!table().emplace(name, std::move(algorithm)).second)
    throw std::logic_error(fmt::format("two algorithms are called {}", name));
}

const std::map<std::string, Algorithm, std::less<>>& algorithms() { return table(); }

const Algorithm& algorithm_named(std::string_view wanted) {
  const auto found = table().find(wanted);
  if (found != table().end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, algorithm] : table()) known.push_back(name);
  throw std::invalid_argument(
      fmt::format("no algorithm is called '{}': expected one of {}", wanted, fmt::join(known, ", ")));
}

void check(const Request& r) {
  if (r.dims.empty()) throw std::invalid_argument("no dims: expected at least one, as in 8 or 4x4");
  if (r.channels < 1 || r.channels > most_channels)
    throw std::invalid_argument(fmt::format("{} channels: expected 1 to {}", r.channels, most_channels));
  if (r.segments < 1 || r.segments > most_segments)
    throw std::invalid_argument(fmt::format("{} segments: expected 1 to {}", r.segments, most_segments));
  check(conditions(r, 1));
}

std::string refusal(const Algorithm& algorithm, const Request& request) {
  if (request.in_place && request.collective == Collective::all_to_all_v)
    return "in place, the blocks sent and received would overlap at different sizes";
  check(request);
  if (!request.levels.empty() && !algorithm.has_levels)
    return fmt::format("it has no levels, and {} are given", request.levels.size());
  if (std::ranges::find(algorithm.serves, request.collective) == algorithm.serves.end())
    return "it serves other collectives";
  const std::string why = algorithm.refuses ? algorithm.refuses(request) : "";
  return why.empty() ? refuses_chunks(request, pieces_of(algorithm, request)) : why;
}

Task task_of(const Algorithm& algorithm, const Request& request) {
  const std::int64_t pieces = pieces_of(algorithm, request);
  if (const std::string why = refuses_chunks(request, pieces); !why.empty()) throw std::invalid_argument(why);
  Task task = conditions(request, static_cast<std::int32_t>(pieces));
  task.even = algorithm.even && algorithm.even(request);
  check(task);
  return task;
}

Schedule make(const Algorithm& algorithm, const Request& request) {
  Recorder recorder(accepted(algorithm, request));
  Builder builder(recorder, request.ranks());
  algorithm.build(request, builder);
  Schedule schedule{.task = recorder.task(), .algorithm = algorithm.name, .programs = recorder.finish()};
  schedule.channels = recorder.channels();
  return schedule;
}

Program make_program(const Algorithm& algorithm, const Request& request, Rank rank) {
  Recorder recorder(accepted(algorithm, request), rank);
  Builder builder(recorder, request.ranks());
  algorithm.build(request, builder);
  return std::move(recorder.finish().front());
}

Symmetry symmetry_of(const Algorithm& algorithm, const Request& request) {
  if (algorithm.symmetry) return algorithm.symmetry(request);
  return {{{Axis::Kind::distinct, request.ranks()}}};
}

Schedule make(std::string_view algorithm, const Request& request) { return make(algorithm_named(algorithm), request); }

}  // namespace trellis::schedule
