#include "ccl/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <tuple>

namespace trellis::ccl {
namespace {

template <class Number>
Number number_in(std::string_view word, std::string_view what) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || value < 0)
    throw std::invalid_argument(fmt::format("'{}' is no {}: expected a whole number", word, what));
  return value;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos || line[begin] == '#') break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

auto group(const Rule& r) { return std::tuple(r.collective, r.ranks); }
auto order(const Rule& r) { return std::tuple(r.collective, r.ranks, r.type, r.from_bytes); }

Rule rule_in(const std::vector<std::string_view>& words) {
  if (words.size() != 4 && words.size() != 5)
    throw std::invalid_argument("expected: collective ranks from_bytes algorithm [type]");
  Rule rule{schedule::collective_named(words[0]), number_in<schedule::Rank>(words[1], "number of ranks"),
            number_in<std::uint64_t>(words[2], "number of bytes"), choice_named(words[3])};
  if (words.size() == 5) rule.type = kernels::dtype_named(words[4]);
  return rule;
}

}  // namespace

std::string text_of(const Choice& c) {
  std::string text = c.algorithm;
  if (c.channels != 1) text += fmt::format("*{}", c.channels);
  if (c.segments != 1) text += fmt::format("/{}", c.segments);
  return text;
}

Choice choice_named(std::string_view text) {
  Choice c;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos)
    c.segments = number_in<std::int32_t>(text.substr(slash + 1), "number of segments");
  text = text.substr(0, slash);
  const std::size_t star = text.find('*');
  if (star != std::string_view::npos) c.channels = number_in<std::int32_t>(text.substr(star + 1), "number of channels");
  c.algorithm = text.substr(0, star);
  if (c.algorithm.empty() || c.channels < 1 || c.segments < 1)
    throw std::invalid_argument(fmt::format("'{}' is no choice: expected ALGORITHM[*CHANNELS][/SEGMENTS]", text));
  return c;
}

std::string text_of(const Rule& r) {
  const std::string text =
      fmt::format("{} {} {} {}", schedule::name(r.collective), r.ranks, r.from_bytes, text_of(r.choice));
  return r.type ? fmt::format("{} {}", text, kernels::name(*r.type)) : text;
}

void Selections::add(Rule rule) {
  rules_.insert(std::ranges::upper_bound(rules_, order(rule), {}, order), std::move(rule));
}

Selections Selections::read(std::string_view text) {
  Selections all;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    try {
      all.add(rule_in(words));
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("line {}: {}", number, e.what()));
    }
  }
  return all;
}

std::string Selections::text() const {
  std::string text = "# collective ranks from_bytes algorithm[*channels][/segments] [type]\n";
  for (const Rule& r : rules_) text += text_of(r) + "\n";
  return text;
}

std::vector<Choice> Selections::choices(schedule::Collective collective, schedule::Rank ranks, std::uint64_t bytes,
                                        kernels::DType type) const {
  schedule::Rank nearest = 0;
  for (const Rule& r : rules_)
    if (r.collective == collective && (nearest == 0 || std::abs(r.ranks - ranks) < std::abs(nearest - ranks)))
      nearest = r.ranks;
  std::vector<Choice> typed, any;
  for (const Rule& r : rules_)
    if (group(r) == std::tuple(collective, nearest) && r.from_bytes <= bytes && (!r.type || r.type == type)) {
      std::vector<Choice>& found = r.type ? typed : any;
      found.insert(found.begin(), r.choice);
    }
  typed.insert(typed.end(), any.begin(), any.end());
  return typed;
}

}  // namespace trellis::ccl
