// Runs several configs at once, each on a share of every block, so that one can use links that another leaves idle. A
// part is written as an AlgorithmConfig with a weight: torus:3 and torus^1.0:2 carry three and two fifths.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/algorithm_config.h"
#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

using enum Collective;

constexpr std::int64_t most_weight = 1000;

struct Share {
  const Algorithm* algorithm = nullptr;
  Request request;
  std::int64_t weight = 1;
};

// The product, or the largest number if the product is larger: so many channels or segments are refused later.
std::int32_t product(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(std::int64_t{a} * b, std::numeric_limits<std::int32_t>::max()));
}

Share share_of(const Request& whole, const std::string& level) {
  const std::size_t colon = level.rfind(':');
  const bool weighed = colon != level.npos && level.find(')', colon) == level.npos;
  Share share;
  if (weighed) {
    const auto weight = text::number<std::int64_t>(std::string_view(level).substr(colon + 1), 1, most_weight);
    if (!weight)
      text::refuse("part '{}': expected a config and its weight, 1 to {}, as in torus:3", level, most_weight);
    share.weight = *weight;
  }
  AlgorithmConfig config = algorithm_config_named(weighed ? std::string_view(level).substr(0, colon) : level);
  config.channels = product(config.channels, whole.channels);
  config.segments = product(config.segments, whole.segments);
  share.algorithm = &algorithm_named(config.algorithm);
  share.request = request_by(config, whole);
  return share;
}

std::vector<Share> shares_of(const Request& r) {
  std::vector<Share> shares;
  for (const std::string& level : r.levels) shares.push_back(share_of(r, level));
  return shares;
}

std::string refuses(const Request& r) {
  if (r.levels.size() < 2)
    return fmt::format("it needs at least two parts, as in split(ring:2,direct), not {}", r.levels.size());
  for (const Share& share : shares_of(r)) {
    if (share.algorithm->name == "split") return "a part of it cannot be split again: give more parts";
    if (share.request.ranks() != r.ranks())
      return fmt::format("a part has {} ranks, and the whole {}", share.request.ranks(), r.ranks());
    if (const std::string why = refusal(*share.algorithm, share.request); !why.empty())
      return fmt::format("{} cannot do its part: {}", share.algorithm->name, why);
  }
  return "";
}

std::int64_t pieces_of(const Share& s) { return task_of(*s.algorithm, s.request).pieces; }

// Chunks per unit of weight, such that every part's own cuts fit its share. Saturates.
std::int64_t chunks_of_weight(const std::vector<Share>& shares) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  std::int64_t chunks = 1;
  for (const Share& s : shares) {
    const std::int64_t own = pieces_of(s);
    chunks = std::min(most, std::lcm(chunks, own / std::gcd(own, s.weight)));
  }
  return chunks;
}

std::int64_t pieces(const Request& r) {
  std::int64_t weights = 0;
  const std::vector<Share> shares = shares_of(r);
  for (const Share& s : shares) weights += s.weight;
  return weights * chunks_of_weight(shares);
}

void build(const Request& request, Builder& b) {
  const std::vector<Share> shares = shares_of(request);
  const std::int64_t each = chunks_of_weight(shares), block = pieces(request);
  std::int64_t base = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Share& s = shares[i];
    const std::int64_t own = s.weight * each;
    SubMachine part{.count = request.ranks(), .scratch = b.scratch_used()};
    part.data.base = base;
    if (by_block(request.operation.collective)) part.data.digits = {{own, 1}, {request.ranks(), block}};
    part.data.grain = own / pieces_of(s);
    part.input = part.output = part.data;
    part.input.region = Region::input;
    part.output.region = Region::output;
    Builder beside = b.beside(static_cast<int>(shares.size()), static_cast<int>(i)).part(part);
    schedule::build(*s.algorithm, s.request, beside);
    base += own;
  }
}

bool even(const Request& r) {
  for (const Share& s : shares_of(r))
    if (s.algorithm->mixes_blocks || task_of(*s.algorithm, s.request).even) return true;
  return false;
}

// The symmetry that all parts have. There is none if a part sends several blocks as one run: its shares of them lie
// apart.
Symmetry symmetry(const Request& r) {
  const Symmetry distinct{{{SymmetryAxis::Kind::distinct, r.ranks()}}};
  const std::vector<Share> shares = shares_of(r);
  if (shares.empty()) return distinct;
  Symmetry first = symmetry_of(*shares.front().algorithm, shares.front().request);
  for (const Share& s : shares)
    if (joins_blocks(*s.algorithm, s.request) || symmetry_of(*s.algorithm, s.request).axes != first.axes)
      return distinct;
  return first;
}

const RegisteredAlgorithm registered{{
    .name = "split",
    .summary = "several algorithms at once, each with a share of the data",
    .constraint = "what its parts can serve",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all, all_gather_v,
               reduce_scatter_v},
    .refuses = refuses,
    .pieces = pieces,
    .build = build,
    .has_levels = true,
    .even = even,
    .symmetry = symmetry,
}};

}  // namespace
}  // namespace trellis::schedule
