#include "schedule/algorithms/algorithm_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "schedule/algorithms/algorithm.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::schedule {
namespace {

[[noreturn]] void complain(std::string_view text) {
  text::refuse(
      "'{}' is no algorithm config: expected an algorithm and any of levels=(mesh,ring), dims=4x16, "
      "order=(1,0), numbering=(0,2,1,3), channels=2, segments=4; or its short form, as in ring*2/4",
      text);
}

constexpr std::int32_t most_numbered = 1 << 24;  // ranks in a run

std::optional<std::int32_t> number(std::string_view word) { return text::number<std::int32_t>(word, 0); }

std::int32_t number_in(std::string_view word, std::string_view whole, std::int32_t least) {
  const auto value = text::number<std::int32_t>(word, least);
  if (!value) complain(whole);
  return *value;
}

std::vector<std::int32_t> numbers_in(std::string_view words, char between, std::string_view whole, std::int32_t least) {
  std::vector<std::int32_t> numbers;
  for (const std::string_view word : text::split(words, between)) numbers.push_back(number_in(word, whole, least));
  return numbers;
}

// Throws invalid_argument if the parentheses don't match.
std::vector<std::string> split_outside_parentheses(std::string_view text, char between) {
  std::vector<std::string> words(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0) break;
    if (c == between && depth == 0)
      words.emplace_back();
    else
      words.back() += c;
  }
  if (depth != 0) text::refuse("'{}': its parentheses do not match", text);
  return words;
}

std::string list_text(const std::string& items) {
  const bool plain = items.find_first_of(", ") == items.npos && !items.starts_with('(');
  return plain ? items : fmt::format("({})", items);
}

std::string_view without_parentheses(std::string_view list) {
  return list.starts_with('(') && list.ends_with(')') ? list.substr(1, list.size() - 2) : list;
}

// ALGORITHM[(LEVEL,...)][@DIMS][^ORDER][~NUMBERING][*CHANNELS][/SEGMENTS]
AlgorithmConfig short_config_named(std::string_view text) {
  AlgorithmConfig config;
  std::string_view rest = text;
  const std::size_t levels_end = text.rfind(')');
  const auto cut = [&](char sign) -> std::optional<std::string_view> {
    const std::size_t at = rest.rfind(sign);
    if (at == rest.npos || (levels_end != text.npos && at < levels_end)) return std::nullopt;
    const std::string_view after = rest.substr(at + 1);
    rest = rest.substr(0, at);
    return after;
  };
  if (const auto segments = cut('/')) config.segments = number_in(*segments, text, 1);
  if (const auto channels = cut('*')) config.channels = number_in(*channels, text, 1);
  if (const auto numbering = cut('~')) config.numbering = numbering_named(*numbering);
  if (const auto order = cut('^')) config.order = numbers_in(*order, '.', text, 0);
  if (const auto dims = cut('@')) config.dims = numbers_in(*dims, 'x', text, 1);
  if (rest.ends_with(')')) {
    const std::size_t open = rest.find('(');
    if (open == rest.npos) complain(text);
    config.levels = split_at_commas(rest.substr(open + 1, rest.size() - open - 2));
    rest = rest.substr(0, open);
  }
  if (rest.empty() || rest.find_first_of("()@^~*/, =") != rest.npos) complain(text);
  config.algorithm = rest;
  return config;
}

// Sets the field of one word, such as dims=4x16, which must not have a value yet.
void take_field(std::string_view word, std::string_view text, AlgorithmConfig& config) {
  const std::size_t equals = word.find('=');
  if (equals == word.npos) complain(text);
  const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
  const auto once = [&](bool unset) {
    if (!unset) text::refuse("'{}': its {} are given twice", text, key);
  };
  if (key == "channels")
    once(config.channels == 1), config.channels = number_in(value, text, 1);
  else if (key == "segments")
    once(config.segments == 1), config.segments = number_in(value, text, 1);
  else if (key == "dims")
    once(config.dims.empty()), config.dims = numbers_in(value, 'x', text, 1);
  else if (key == "order")
    once(config.order.empty()), config.order = numbers_in(without_parentheses(value), ',', text, 0);
  else if (key == "numbering")
    once(config.numbering.empty()), config.numbering = numbering_named(without_parentheses(value));
  else if (key == "levels")
    once(config.levels.empty()), config.levels = split_at_commas(without_parentheses(value));
  else
    complain(text);
}

}  // namespace

std::string numbering_text(const std::vector<Rank>& numbering) {
  std::string text;
  for (std::size_t i = 0; i < numbering.size();) {
    std::size_t last = i;
    const Rank stride = i + 1 < numbering.size() ? numbering[i + 1] - numbering[i] : 0;
    while (stride > 0 && last + 1 < numbering.size() && numbering[last + 1] - numbering[last] == stride) ++last;
    if (last < i + 2) last = i;  // two ranks are no run
    text += fmt::format("{}{}", i == 0 ? "" : ".", numbering[i]);
    if (last > i) text += fmt::format("-{}", numbering[last]);
    if (last > i && stride != 1) text += fmt::format("+{}", stride);
    i = last + 1;
  }
  return text;
}

std::vector<Rank> numbering_named(std::string_view text) {
  std::vector<Rank> numbering;
  std::string pointed(text);
  std::ranges::replace(pointed, ',', '.');
  for (const std::string_view run : text::split(pointed, '.')) {
    const std::size_t dash = std::min(run.find('-'), run.size()), plus = std::min(run.find('+', dash), run.size());
    const auto first = number(run.substr(0, dash));
    const auto last = dash < run.size() ? number(run.substr(dash + 1, plus - dash - 1)) : first;
    const auto stride = plus < run.size() ? number(run.substr(plus + 1)) : 1;
    if (!first || !last || !stride || *last < *first || *stride < 1 || (*last - *first) / *stride >= most_numbered)
      text::refuse("'{}' in '{}' are no ranks: expected one as in 3, or a run as in 0-7 or 0-14+2", run, text);
    for (std::int64_t rank = *first; rank <= *last; rank += *stride) numbering.push_back(static_cast<Rank>(rank));
  }
  return numbering;
}

std::vector<std::string> split_at_commas(std::string_view text) { return split_outside_parentheses(text, ','); }

std::string family_of(const AlgorithmConfig& w) {
  std::string text = w.algorithm;
  if (!w.levels.empty()) text += " levels=" + list_text(fmt::format("{}", fmt::join(w.levels, ",")));
  if (!w.dims.empty()) text += fmt::format(" dims={}", fmt::join(w.dims, "x"));
  if (!w.order.empty()) text += " order=" + list_text(fmt::format("{}", fmt::join(w.order, ",")));
  if (!w.numbering.empty()) {
    std::string runs = numbering_text(w.numbering);
    std::ranges::replace(runs, '.', ',');
    text += " numbering=" + list_text(runs);
  }
  return text;
}

std::string text_of(const AlgorithmConfig& w) {
  std::string text = family_of(w);
  if (w.channels != 1) text += fmt::format(" channels={}", w.channels);
  if (w.segments != 1) text += fmt::format(" segments={}", w.segments);
  return text;
}

AlgorithmConfig algorithm_config_named(std::string_view text) {
  if (text.starts_with(file_prefix) && text.size() > file_prefix.size())
    return AlgorithmConfig{.algorithm = std::string(text)};
  const std::vector<std::string> words = split_outside_parentheses(text, ' ');
  AlgorithmConfig config = short_config_named(words.front());
  for (std::size_t i = 1; i < words.size(); ++i) take_field(words[i], text, config);
  return config;
}

std::string_view config_at_start_of(std::string_view line) {
  const auto word_end = [&](std::size_t at) {
    for (int depth = 0; at < line.size() && (depth > 0 || line[at] != ' '); ++at)
      depth += line[at] == '(' ? 1 : line[at] == ')' ? -1 : 0;
    return at;
  };
  std::size_t end = word_end(0);
  while (end < line.size()) {
    const std::size_t begin = std::min(line.find_first_not_of(' ', end), line.size()), next = word_end(begin);
    if (line.substr(begin, next - begin).find('=') == line.npos) break;
    end = next;
  }
  return line.substr(0, end);
}

Request request_by(const AlgorithmConfig& config, Request rest) {
  if (!config.dims.empty()) rest.dims = config.dims;
  rest.channels = config.channels, rest.segments = config.segments;
  rest.levels = config.levels, rest.order = config.order, rest.numbering = config.numbering;
  return rest;
}

}  // namespace trellis::schedule
