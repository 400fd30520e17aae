#include "schedule/formats/line_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

}  // namespace

std::string escaped(std::string_view name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const auto code = static_cast<unsigned char>(c);
    const bool at_an_end = i == 0 || i + 1 == name.size();  // where blanks would be trimmed
    if (c == '\\') {
      text += "\\\\";
    } else if (code < ' ' || code == 0x7f || (c == ' ' && at_an_end)) {
      text += fmt::format("\\x{:02x}", code);
    } else {
      text += c;
    }
  }
  return text;
}

std::string LineTokenizer::unescaped() {
  std::string name;
  while (!done()) {
    if (rest_.front() != '\\') {
      name += rest_.front();
      rest_.remove_prefix(1);
    } else if (rest_.starts_with("\\\\")) {
      name += '\\';
      rest_.remove_prefix(2);
    } else {
      unsigned char code = 0;
      const std::string_view digits = rest_.substr(std::min<std::size_t>(2, rest_.size()), 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
      if (!rest_.starts_with("\\x") || digits.size() != 2 || error != std::errc{} || end != digits.data() + 2)
        fail("\\\\ or \\x and two hexadecimal digits");
      name += static_cast<char>(code);
      rest_.remove_prefix(4);
    }
  }
  return name;
}

void LineTokenizer::trim() {
  rest_.remove_suffix(rest_.size() - (rest_.find_last_not_of(" \t\r") + 1));
  skip();
}

void LineTokenizer::skip() {
  while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
}

bool LineTokenizer::take(std::string_view word) {
  if (!rest_.starts_with(word)) return false;
  if (rest_.size() > word.size() && is_letter(word.back()) && is_letter(rest_[word.size()])) return false;
  rest_.remove_prefix(word.size());
  skip();
  return true;
}

void LineTokenizer::expect(std::string_view word) {
  if (!take(word)) fail(fmt::format("'{}'", word));
}

std::string_view LineTokenizer::word() {
  const auto end = std::ranges::find_if_not(rest_, is_letter);
  const std::string_view found = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
  rest_.remove_prefix(found.size());
  skip();
  return found;
}

std::int64_t LineTokenizer::integer(std::string_view what, std::int64_t least, std::int64_t most) {
  std::string_view rest = rest_;
  const auto value = text::take_number<std::int64_t>(rest);
  if (!value || *value < least || *value > most)
    fail(least == most ? std::string(what) : fmt::format("{}, {} to {}", what, least, most));
  rest_ = rest;
  skip();
  return *value;
}

void LineTokenizer::end() const {
  if (!done()) fail("the end of the line");
}

void LineTokenizer::fail(std::string_view expected) const {
  constexpr std::size_t shown = 60;
  const std::string found = done() ? "the line ends" : fmt::format("found '{}'", escaped(rest_.substr(0, shown)));
  text::refuse("line {}: {}: expected {}", number_, found, expected);
}

}  // namespace trellis::schedule
