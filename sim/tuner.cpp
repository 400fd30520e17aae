#include "sim/tuner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "sim/dims_text.h"

namespace trellis::sim {
namespace {

std::int32_t count_in(std::string_view text, std::string_view whole) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1)
    throw std::invalid_argument(
        fmt::format("'{}' is no way: expected ALGORITHM[(LEVEL,...)][@DIMS][*CHANNELS][/SEGMENTS]", whole));
  return value;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Rank product(const std::vector<Rank>& dims) {
  return std::accumulate(dims.begin(), dims.end(), Rank{1}, std::multiplies<>());
}

std::vector<Rank> every(Rank stride, Rank count) {
  std::vector<Rank> members(static_cast<std::size_t>(count));
  for (Rank i = 0; i < count; ++i) members[static_cast<std::size_t>(i)] = i * stride;
  return members;
}

}  // namespace

std::string family_of(const Way& w) {
  std::string text = w.algorithm;
  if (!w.levels.empty()) text += fmt::format("({})", fmt::join(w.levels, ","));
  if (!w.dims.empty()) text += fmt::format("@{}", fmt::join(w.dims, "x"));
  return text;
}

std::string text_of(const Way& w) {
  std::string text = family_of(w);
  if (w.channels != 1) text += fmt::format("*{}", w.channels);
  if (w.segments != 1) text += fmt::format("/{}", w.segments);
  return text;
}

Way way_named(std::string_view text) {
  Way way;
  std::string_view rest = text;
  const auto cut = [&](char sign) -> std::optional<std::string_view> {
    const std::size_t at = rest.rfind(sign);
    if (at == rest.npos) return std::nullopt;
    const std::string_view after = rest.substr(at + 1);
    rest = rest.substr(0, at);
    return after;
  };
  const auto count = [&](std::optional<std::string_view> word) { return word ? count_in(*word, text) : 1; };
  way.segments = count(cut('/'));
  way.channels = count(cut('*'));
  if (const auto dims = cut('@')) way.dims = dims_of(*dims);
  if (rest.ends_with(')'))
    if (const auto levels = cut('(')) way.levels = split(levels->substr(0, levels->size() - 1));
  way.algorithm = rest;
  if (rest.empty()) count_in(rest, text);
  return way;
}

Rank Group::ranks() const { return product(dims); }

std::vector<Group> groups_of(const Machine& machine) {
  const std::vector<Rank> dims = machine.dims();
  std::vector<Group> all = {{"all", dims}};
  Rank inner = 1;
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
    inner *= dims[i];
    const Rank outer = machine.ranks() / inner;
    const auto cut = dims.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (inner > 1 && outer > 1) {
      all.push_back({fmt::format("inner-{}", inner), {dims.begin(), cut}, every(1, inner)});
      all.push_back({fmt::format("across-{}", outer), {cut, dims.end()}, every(inner, outer), true});
    }
  }
  std::ranges::stable_sort(all, [](const Group& a, const Group& b) { return a.ranks() > b.ranks(); });
  return all;
}

// As many of each dimension as are needed: 32 of 4x4x4 are 4x4x2.
Group first_ranks(const Machine& machine, Rank count) {
  if (count < 1 || count > machine.ranks())
    throw std::invalid_argument(
        fmt::format("{} ranks of {}: expected 1 to {}", count, machine.name(), machine.ranks()));
  Group group{.name = fmt::format("first-{}", count), .dims = {}};
  Rank left = count;
  for (const Rank dim : machine.dims()) {
    if (left % dim != 0 && dim % left != 0) {
      group.dims = {count};
      left = 1;
    }
    if (left == 1) break;
    group.dims.push_back(std::min(left, dim));
    left /= group.dims.back();
  }
  if (group.dims.empty()) group.dims = {1};
  if (count < machine.ranks()) group.members = every(1, count);
  return group;
}

Group group_named(const Machine& machine, std::string_view name) {
  const std::vector<Group> all = groups_of(machine);
  std::vector<std::string> names;
  for (const Group& g : all) {
    if (g.name == name) return g;
    names.push_back(g.name);
  }
  throw std::invalid_argument(
      fmt::format("{} has no group '{}': expected {}", machine.name(), name, fmt::join(names, ", ")));
}

Pricer::Pricer(const Machine& machine, Group group, Settings settings)
    : machine_(machine), group_(std::move(group)), settings_(std::move(settings)) {}

schedule::Request Pricer::request(const Way& w) const {
  const bool peers = settings_.collective == schedule::Collective::send_recv;
  return {.collective = settings_.collective,
          .dims = w.dims.empty() ? group_.dims : w.dims,
          .root = settings_.root,
          .peer = peers ? group_.ranks() - 1 : 0,
          .pairs = settings_.pairs,
          .in_place = settings_.in_place,
          .channels = w.channels,
          .segments = w.segments,
          .levels = w.levels};
}

std::string Pricer::refusal(const Way& w) const {
  return schedule::refusal(schedule::algorithm_named(w.algorithm), request(w));
}

// Where there are fewer elements than chunks, the pattern depends on how many: price() makes one for each size.
Price Pricer::price(const Way& way, double bytes, bool explain) {
  const schedule::Algorithm& algorithm = schedule::algorithm_named(way.algorithm);
  const schedule::Request wanted = request(way);
  const PriceOptions options{.bytes = bytes,
                             .element = settings_.element,
                             .era = settings_.era,
                             .explain = explain,
                             .members = group_.members};
  const schedule::Task task = task_of(algorithm, wanted);
  if (bytes < settings_.element * static_cast<double>(schedule::data_chunks(task)))
    return sim::price(algorithm, wanted, machine_, options);
  std::unique_ptr<Pattern>& kept = patterns_[way];
  if (!kept) kept = std::make_unique<Pattern>(algorithm, wanted);
  return sim::price(*kept, machine_, options);
}

std::vector<Way> ways_of(const Pricer& pricer, const std::vector<std::string>& algorithms,
                         const std::vector<std::int32_t>& lanes, const std::vector<std::int32_t>& parts) {
  std::vector<std::string> names = algorithms;
  if (names.empty())
    for (const auto& [name, algorithm] : schedule::algorithms()) names.push_back(name);
  std::vector<Way> ways;
  for (const std::string& name : names)
    for (const std::int32_t channels : lanes)
      for (const std::int32_t segments : parts)
        if (const Way way{name, channels, segments}; pricer.refusal(way).empty()) ways.push_back(way);
  return ways;
}

std::optional<Cost> fastest(Pricer& pricer, const std::vector<Way>& ways, double bytes) {
  std::optional<Cost> best;
  for (const Way& way : ways) {
    const Time time = pricer.price(way, bytes).time;
    if (!best || time < best->time) best = Cost{way, bytes, time};
  }
  return best;
}

std::vector<Region> regions_of(std::vector<Cost> costs, bool family) {
  std::ranges::stable_sort(costs, [](const Cost& a, const Cost& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.time != b.time ? a.time < b.time : a.way < b.way;
  });
  std::vector<Region> regions;
  for (std::size_t begin = 0, end = 0; begin < costs.size(); begin = end) {
    while (end < costs.size() && costs[end].bytes == costs[begin].bytes) ++end;
    const Cost& best = costs[begin];
    if (!regions.empty()) {
      const Way& held = regions.back().way;
      const auto still = std::find_if(
          costs.begin() + static_cast<std::ptrdiff_t>(begin), costs.begin() + static_cast<std::ptrdiff_t>(end),
          [&](const Cost& c) { return family ? family_of(c.way) == family_of(held) : c.way == held; });
      const bool there = still != costs.begin() + static_cast<std::ptrdiff_t>(end);
      if (there && static_cast<double>(best.time) >= static_cast<double>(still->time) * (1 - worth_changing)) continue;
    }
    regions.push_back({regions.empty() ? 0 : best.bytes, best.way, best.time});
  }
  return regions;
}

double crossover(Pricer& pricer, const Way& before, const Way& after, double low, double high, double within) {
  while (high / low > within) {
    const double middle = std::sqrt(low * high);
    (pricer.price(after, middle).time < pricer.price(before, middle).time ? high : low) = middle;
  }
  return high;
}

}  // namespace trellis::sim
