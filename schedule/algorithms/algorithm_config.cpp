#include "schedule/algorithms/algorithm_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <stdexcept>

#include "schedule/algorithms/algorithm.h"
#include "text/number.h"
#include "text/words.h"

namespace trellis::schedule {
namespace {

[[noreturn]] void complain(std::string_view text) {
  throw std::invalid_argument(fmt::format(
      "'{}' is no way: expected ALGORITHM[(LEVEL,...)][@DIMS][^ORDER][~NUMBERING][*CHANNELS][/SEGMENTS], as in ring*2",
      text));
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
  for (const std::string_view run : text::split(text, '.')) {
    const std::size_t dash = std::min(run.find('-'), run.size()), plus = std::min(run.find('+', dash), run.size());
    const auto first = number(run.substr(0, dash));
    const auto last = dash < run.size() ? number(run.substr(dash + 1, plus - dash - 1)) : first;
    const auto stride = plus < run.size() ? number(run.substr(plus + 1)) : 1;
    if (!first || !last || !stride || *last < *first || *stride < 1 || (*last - *first) / *stride >= most_numbered)
      throw std::invalid_argument(
          fmt::format("'{}' in '{}' are no ranks: expected one as in 3, or a run as in 0-7 or 0-14+2", run, text));
    for (std::int64_t rank = *first; rank <= *last; rank += *stride) numbering.push_back(static_cast<Rank>(rank));
  }
  return numbering;
}

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
  if (!w.numbering.empty()) text += fmt::format("~{}", numbering_text(w.numbering));
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
  if (const auto numbering = cut('~')) way.numbering = numbering_named(*numbering);
  if (const auto order = cut('^')) way.order = numbers_in(*order, '.', text, 0);
  if (const auto dims = cut('@')) way.dims = numbers_in(*dims, 'x', text, 1);
  if (rest.ends_with(')')) {
    const std::size_t open = rest.find('(');
    if (open == rest.npos) complain(text);
    way.levels = split_at_commas(rest.substr(open + 1, rest.size() - open - 2));
    rest = rest.substr(0, open);
  }
  if (rest.empty() || rest.find_first_of("()@^~*/, ") != rest.npos) complain(text);
  way.algorithm = rest;
  return way;
}

Request request_by(const AlgorithmConfig& way, Request rest) {
  if (!way.dims.empty()) rest.dims = way.dims;
  rest.channels = way.channels, rest.segments = way.segments;
  rest.levels = way.levels, rest.order = way.order, rest.numbering = way.numbering;
  return rest;
}

}  // namespace trellis::schedule
