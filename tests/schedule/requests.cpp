#include "tests/schedule/requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "schedule/proof/folded.h"

namespace trellis::schedule {
namespace {

std::vector<std::vector<Rank>> shapes(Rank most_ranks) {
  std::vector<std::vector<Rank>> all;
  for (Rank n = 1; n <= most_ranks; ++n) all.push_back({n});
  for (const auto& dims : std::vector<std::vector<Rank>>{{2, 2},
                                                         {2, 3},
                                                         {3, 2},
                                                         {4, 2},
                                                         {2, 4},
                                                         {1, 4},
                                                         {2, 2, 2},
                                                         {3, 3},
                                                         {4, 4},
                                                         {2, 2, 4},
                                                         {4, 2, 2},
                                                         {3, 2, 2}}) {
    if (Request{.dims = dims}.ranks() <= most_ranks) all.push_back(dims);
  }
  return all;
}

std::vector<Rank> roots(Collective c, Rank ranks) {
  if (!rooted(c) || ranks == 1) return {0};
  return {0, ranks / 2, ranks - 1};
}

Request filled(Collective c, const std::vector<Rank>& dims, Rank root) {
  Request request{.operation = {.collective = c, .root = root}, .dims = dims};
  const Rank ranks = request.ranks();
  if (c == Collective::send_recv) request.operation.peer = ranks - 1;
  if (c == Collective::permute)
    for (Rank r = 0; r + 1 < ranks; ++r) request.operation.pairs.push_back({r, (r * 2 + 1) % (ranks | 1) % ranks});
  if (c != Collective::permute) return request;
  std::vector<Pair> distinct;
  for (const Pair& pair : request.operation.pairs)
    if (std::ranges::none_of(distinct, [&](const Pair& p) { return p.target == pair.target; }))
      distinct.push_back(pair);
  request.operation.pairs = distinct;
  return request;
}

// The levels to try; only `split` needs any.
std::vector<std::vector<std::string>> levels(const Algorithm& algorithm) {
  if (algorithm.name != "split") return {{}};
  return {{"direct:2", "direct"}, {"ring:2", "direct"}, {"torus:3", "hierarchical:2", "ring"}};
}

// Lowers the number of ranks where TRELLIS_SWEEP_RANKS says so, as under sanitizers, where each rank costs more.
Rank sweep(Rank most_ranks) {
  const char* const limit = std::getenv("TRELLIS_SWEEP_RANKS");
  return limit == nullptr ? most_ranks : std::min(most_ranks, static_cast<Rank>(std::stoi(limit)));
}

}  // namespace

std::string Case::text() const {
  return fmt::format("{}({}) {} {}{} root {} channels {} segments {}", algorithm->name, fmt::join(request.levels, ","),
                     name(request.operation.collective), fmt::join(request.dims, "x"),
                     request.operation.in_place ? " in place" : "", request.operation.root, request.channels,
                     request.segments);
}

void each_case(const Algorithm& algorithm, Rank most_ranks, const std::function<void(const Case&)>& visit) {
  for (Collective c : algorithm.serves)
    for (const auto& dims : shapes(sweep(most_ranks)))
      for (Rank root : roots(c, Request{.dims = dims}.ranks()))
        for (const bool in_place : {false, true})
          for (const auto& [channels, segments] : {std::pair(1, 1), {2, 1}, {1, 3}, {3, 2}})
            for (const auto& parts : levels(algorithm)) {
              Request request = filled(c, dims, root);
              request.operation.in_place = in_place;
              request.channels = channels;
              request.segments = segments;
              request.levels = parts;
              if (refusal(algorithm, request).empty()) visit({&algorithm, request});
            }
}

void each_case(Rank most_ranks, const std::function<void(const Case&)>& visit) {
  for (const auto& [name, algorithm] : algorithms()) each_case(algorithm, most_ranks, visit);
}

std::string asymmetry(const Algorithm& algorithm, const Request& request, const Schedule& whole) {
  const Symmetry symmetry = symmetry_of(algorithm, request);
  if (symmetry.ranks() != whole.ranks()) return fmt::format("{} ranks, not {}", symmetry.ranks(), whole.ranks());
  for (Rank r = 0; r < whole.ranks(); ++r) {
    const Rank like = symmetry.representative(r);
    const auto fault = find_difference(symmetry, like, whole.programs[like], r, whole.programs[r]);
    if (fault) return fault->text;
  }
  return "";
}

}  // namespace trellis::schedule
