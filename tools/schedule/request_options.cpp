#include "tools/schedule/request_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "schedule/algorithms/algorithm_config.h"
#include "text/nearest.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::tools {
namespace {

using schedule::Algorithm;
using schedule::Collective;
using schedule::Rank;

constexpr std::size_t most_rank_counts = 4096;

// An unsigned number and nothing else; none also when it is too large.
std::optional<std::int32_t> number(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : text::number<std::int32_t>(text);
}

std::optional<IndexSpan> span(std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last) return {};
  return IndexSpan{*first, *last};
}

std::string served_by(Collective collective) {
  std::vector<std::string> names;
  for (const auto& [name, algorithm] : schedule::algorithms())
    if (std::ranges::find(algorithm.serves, collective) != algorithm.serves.end()) names.push_back(name);
  if (names.empty()) return fmt::format("no algorithm serves {}", schedule::name(collective));
  return fmt::format("{} is served by {}", schedule::name(collective), fmt::join(names, ", "));
}

const Algorithm& algorithm_for(Collective collective, const std::string& wanted) {
  if (wanted.empty()) text::refuse("no --algorithm: {}", served_by(collective));
  const auto& known = schedule::algorithms();
  const auto found = known.find(wanted);
  if (found == known.end()) {
    std::vector<std::string> names;
    for (const auto& [name, algorithm] : known) names.push_back(name);
    const std::string meant = text::did_you_mean(wanted, names);
    text::refuse("no algorithm is called '{}'{}", wanted, meant.empty() ? ": " + served_by(collective) : meant);
  }
  if (std::ranges::find(found->second.serves, collective) == found->second.serves.end())
    text::refuse("{} does not serve {}: {}", wanted, schedule::name(collective), served_by(collective));
  return found->second;
}

// An option that has no effect is a mistake, even when its value is the default.
void refuse_meaningless(Collective collective, const RequestOptions& o) {
  const std::string_view name = schedule::name(collective);
  const bool pair = collective == Collective::send_recv;
  if (o.root && !schedule::rooted(collective) && !pair) text::refuse("--root {}: {} has no root", *o.root, name);
  if (o.peer && !pair) text::refuse("--peer {}: only send_recv has a peer, and this is {}", *o.peer, name);
  if (!o.pairs.empty() && collective != Collective::permute)
    text::refuse("--pairs {}: only permute has pairs, and this is {}", o.pairs, name);
}

}  // namespace

void add_request_options(CLI::App& app, RequestOptions& o) {
  app.add_option("-a,--algorithm", o.algorithm,
                 "An algorithm's name, see `trellis schedule list`, or a config NAME@DIMS^ORDER*CHANNELS/SEGMENTS: "
                 "torus@4x4^1.0*2");
  app.add_option("-d,--dims", o.dims, "The machine's shape, innermost first: 8, 4x4, 8x3");
  app.add_option("--root", o.root, "The root; the sender of send_recv [0]");
  app.add_option("--peer", o.peer, "The receiver of send_recv [the last rank]");
  app.add_option("--pairs", o.pairs, "Who sends to whom in permute: 0:1,1:2");
  app.add_flag("--in-place", o.in_place, "Input and output share memory");
  app.add_option("--channels", o.channels, "Parallel lanes [1]");
  app.add_option("--segments", o.segments, "Parts that follow each other as a pipeline [1]");
  app.add_option("--levels", o.levels,
                 "Hierarchical: the algorithm of each dimension, innermost first: direct,ring. Split: its parts and "
                 "their weights: ring:3,direct:2");
  app.add_option("--order", o.order, "Permutation of the dimensions, innermost first: 1.0 swaps two [as in --dims]");
  app.add_option("--numbering", o.numbering,
                 "The ranks that the algorithm sees as 0, 1, 2, ..., for hosts in a mixed order: 0.3.1.2, or with "
                 "strided runs, 0-6+2.1-7+2");
}

std::string first_given(const RequestOptions& o) {
  if (!o.algorithm.empty()) return "--algorithm";
  if (!o.dims.empty()) return "--dims";
  if (o.root) return "--root";
  if (o.peer) return "--peer";
  if (!o.pairs.empty()) return "--pairs";
  if (o.in_place) return "--in-place";
  if (o.channels) return "--channels";
  if (o.segments) return "--segments";
  if (!o.order.empty()) return "--order";
  if (!o.numbering.empty()) return "--numbering";
  return o.levels.empty() ? "" : "--levels";
}

RequestOptions with_config(RequestOptions o) {
  if (o.algorithm.find_first_of("(@^~*/ ") == std::string::npos) return o;
  const schedule::AlgorithmConfig config = schedule::algorithm_config_named(o.algorithm);
  const auto given = [&](const char* option, bool by_option, bool by_config) {
    if (by_option && by_config) text::refuse("{}: --algorithm {} says it, too", option, o.algorithm);
    return by_config;
  };
  if (given("--dims", !o.dims.empty(), !config.dims.empty())) o.dims = shape_text(config.dims);
  if (given("--channels", o.channels.has_value(), config.channels != 1)) o.channels = config.channels;
  if (given("--segments", o.segments.has_value(), config.segments != 1)) o.segments = config.segments;
  if (given("--levels", !o.levels.empty(), !config.levels.empty()))
    o.levels = fmt::format("{}", fmt::join(config.levels, ","));
  if (given("--order", !o.order.empty(), !config.order.empty()))
    o.order = fmt::format("{}", fmt::join(config.order, "."));
  if (given("--numbering", !o.numbering.empty(), !config.numbering.empty()))
    o.numbering = schedule::numbering_text(config.numbering);
  o.algorithm = config.algorithm;
  return o;
}

schedule::Request request_of(Collective collective, const RequestOptions& o, std::vector<Rank> dims) {
  refuse_meaningless(collective, o);
  if (collective == Collective::permute && o.pairs.empty())
    throw std::invalid_argument("no --pairs: permute needs to know who sends to whom, as in 0:1,1:2");
  schedule::Request request{.operation = {.collective = collective, .root = o.root.value_or(0), .in_place = o.in_place},
                            .dims = std::move(dims)};
  if (request.ranks() > most_ranks)
    text::refuse("{} are {} ranks: expected at most {}", shape_text(request.dims), request.ranks(), most_ranks);
  if (!o.pairs.empty()) request.operation.pairs = parse_pairs(o.pairs);
  if (collective == Collective::send_recv) request.operation.peer = o.peer.value_or(request.ranks() - 1);
  schedule::check(request);
  return request;
}

AlgorithmRequest asked(Collective collective, const RequestOptions& given) {
  const RequestOptions o = with_config(given);
  const Algorithm& algorithm = algorithm_for(collective, o.algorithm);
  refuse_meaningless(collective, o);
  if (!o.levels.empty() && !algorithm.has_levels)
    text::refuse("--levels {}: {} has no levels", o.levels, algorithm.name);
  if (o.dims.empty()) throw std::invalid_argument("no --dims: expected sizes like 8 or 4x4x4");
  schedule::Request request = request_of(collective, o, parse_shape(o.dims));
  request.channels = o.channels.value_or(1), request.segments = o.segments.value_or(1);
  if (!o.levels.empty()) request.levels = parse_names(o.levels);
  if (!o.order.empty()) request.order = parse_order(o.order);
  if (!o.numbering.empty()) request.numbering = schedule::numbering_named(o.numbering);
  schedule::check(request);
  return {&algorithm, std::move(request)};
}

std::string in_words(const AlgorithmRequest& a) {
  const schedule::Request& r = a.request;
  std::string text =
      fmt::format("{} by {} on {}", schedule::name(r.operation.collective), a.algorithm->name, shape_text(r.dims));
  if (r.operation.collective == Collective::send_recv)
    text += fmt::format(", {} to {}", r.operation.root, r.operation.peer);
  else if (schedule::rooted(r.operation.collective))
    text += fmt::format(", root {}", r.operation.root);
  if (r.operation.collective == Collective::permute) text += fmt::format(", {} pairs", r.operation.pairs.size());
  if (r.operation.in_place) text += ", in place";
  if (r.channels != 1) text += fmt::format(", {} channels", r.channels);
  if (r.segments != 1) text += fmt::format(", {} segments", r.segments);
  if (!r.levels.empty()) text += fmt::format(", levels {}", fmt::join(r.levels, ","));
  if (!r.order.empty()) text += fmt::format(", order {}", fmt::join(r.order, "."));
  if (!r.numbering.empty()) text += fmt::format(", numbering {}", schedule::numbering_text(r.numbering));
  return text;
}

std::string shape_text(const std::vector<Rank>& dims) { return fmt::format("{}", fmt::join(dims, "x")); }

std::vector<Rank> parse_shape(std::string_view text) {
  std::vector<Rank> dims;
  for (std::string_view part : text::split(text, 'x')) {
    const auto size = number(part);
    if (!size || *size < 1) text::refuse("{} is not a shape: expected sizes like 8 or 4x4x4", text);
    dims.push_back(*size);
  }
  return dims;
}

std::vector<schedule::Pair> parse_pairs(std::string_view text) {
  std::vector<schedule::Pair> pairs;
  for (std::string_view part : text::split(text, ',')) {
    const std::size_t colon = std::min(part.find(':'), part.size());
    const auto source = number(part.substr(0, colon));
    const auto target = colon < part.size() ? number(part.substr(colon + 1)) : std::nullopt;
    if (!source || !target) text::refuse("'{}' in '{}' is not a pair: expected pairs like 0:1,1:2", part, text);
    pairs.push_back({*source, *target});
  }
  return pairs;
}

std::vector<std::string> parse_names(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string& part : schedule::split_at_commas(text)) {
    if (part.empty()) text::refuse("'{}' has an empty name: expected names like direct,ring", text);
    names.emplace_back(part);
  }
  return names;
}

std::vector<std::int32_t> parse_order(std::string_view text) {
  std::vector<std::int32_t> order;
  for (std::string_view part : text::split(text, '.')) {
    const auto dimension = number(part);
    if (!dimension) text::refuse("'{}' is no order of dimensions: expected one like 1.0.2", text);
    order.push_back(*dimension);
  }
  return order;
}

std::vector<Rank> parse_rank_counts(std::string_view text) {
  std::vector<Rank> counts;
  for (std::string_view part : text::split(text, ',')) {
    const auto range = span(part);
    if (!range || range->first < 1 || range->last < range->first)
      text::refuse("'{}' in '{}' is not a count of ranks: expected counts and ranges like 1..17,32,64", part, text);
    if (range->last > most_ranks) text::refuse("{} ranks in '{}': expected at most {}", range->last, text, most_ranks);
    if (counts.size() + static_cast<std::size_t>(range->last - range->first) >= most_rank_counts)
      text::refuse("'{}' names more than {} counts of ranks", text, most_rank_counts);
    for (Rank n = range->first; n <= range->last; ++n) counts.push_back(n);
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

IndexSpan parse_span(std::string_view text) {
  const auto found = span(text);
  if (!found || found->last < found->first) text::refuse("'{}' is not a range: expected one like 1..8", text);
  return *found;
}

}  // namespace trellis::tools
