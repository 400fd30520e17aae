#include "schedule/algorithms/algorithm_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <stdexcept>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

[[noreturn]] void complain(std::string_view text) {
  throw std::invalid_argument(fmt::format(
      "'{}' is no way: expected ALGORITHM[(LEVEL,...)][@DIMS][^ORDER][*CHANNELS][/SEGMENTS], as in ring*2", text));
}

std::int32_t number_in(std::string_view word, std::string_view whole, std::int32_t least) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || value < least) complain(whole);
  return value;
}

std::vector<std::int32_t> numbers_in(std::string_view words, char between, std::string_view whole, std::int32_t least) {
  std::vector<std::int32_t> numbers;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(between, at), words.size());
    numbers.push_back(number_in(words.substr(at, end - at), whole, least));
    at = end + 1;
  }
  return numbers;
}

}  // namespace

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> words(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0) break;
    if (c == ',' && depth == 0)
      words.emplace_back();
    else
      words.back() += c;
  }
  if (depth != 0) throw std::invalid_argument(fmt::format("'{}': its parentheses do not match", text));
  return words;
}

std::string family_of(const AlgorithmConfig& w) {
  std::string text = w.algorithm;
  if (!w.levels.empty()) text += fmt::format("({})", fmt::join(w.levels, ","));
  if (!w.dims.empty()) text += fmt::format("@{}", fmt::join(w.dims, "x"));
  if (!w.order.empty()) text += fmt::format("^{}", fmt::join(w.order, "."));
  return text;
}

std::string text_of(const AlgorithmConfig& w) {
  std::string text = family_of(w);
  if (w.channels != 1) text += fmt::format("*{}", w.channels);
  if (w.segments != 1) text += fmt::format("/{}", w.segments);
  return text;
}

AlgorithmConfig algorithm_config_named(std::string_view text) {
  AlgorithmConfig way;
  if (text.starts_with(file_prefix) && text.size() > file_prefix.size()) {
    way.algorithm = text;
    return way;
  }
  std::string_view rest = text;
  const std::size_t levels_end = text.rfind(')');
  const auto cut = [&](char sign) -> std::optional<std::string_view> {
    const std::size_t at = rest.rfind(sign);
    if (at == rest.npos || (levels_end != text.npos && at < levels_end)) return std::nullopt;
    const std::string_view after = rest.substr(at + 1);
    rest = rest.substr(0, at);
    return after;
  };
  if (const auto segments = cut('/')) way.segments = number_in(*segments, text, 1);
  if (const auto channels = cut('*')) way.channels = number_in(*channels, text, 1);
  if (const auto order = cut('^')) way.order = numbers_in(*order, '.', text, 0);
  if (const auto dims = cut('@')) way.dims = numbers_in(*dims, 'x', text, 1);
  if (rest.ends_with(')')) {
    const std::size_t open = rest.find('(');
    if (open == rest.npos) complain(text);
    way.levels = split_at_commas(rest.substr(open + 1, rest.size() - open - 2));
    rest = rest.substr(0, open);
  }
  if (rest.empty() || rest.find_first_of("()@^*/, ") != rest.npos) complain(text);
  way.algorithm = rest;
  return way;
}

Request request_by(const AlgorithmConfig& way, Request rest) {
  if (!way.dims.empty()) rest.dims = way.dims;
  rest.channels = way.channels, rest.segments = way.segments;
  rest.levels = way.levels, rest.order = way.order;
  return rest;
}

}  // namespace trellis::schedule
