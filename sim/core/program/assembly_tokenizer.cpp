#include "sim/core/program/assembly_tokenizer.h"

#include <fmt/format.h>

#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::sim::core {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 53;

}  // namespace

void AssemblyTokenizer::skip() {
  while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
}

bool AssemblyTokenizer::take(std::string_view text) {
  if (!rest_.starts_with(text)) return false;
  rest_.remove_prefix(text.size());
  skip();
  return true;
}

void AssemblyTokenizer::expect(std::string_view text) {
  if (!take(text)) fail(fmt::format("'{}'", text));
}

bool AssemblyTokenizer::next_is_name() const { return !rest_.empty() && text::in_name(rest_.front()); }

std::string_view AssemblyTokenizer::name() {
  std::size_t size = 0;
  while (size < rest_.size() && text::in_name(rest_[size])) ++size;
  if (size == 0) fail("a name");
  const std::string_view word = rest_.substr(0, size);
  rest_.remove_prefix(size);
  skip();
  return word;
}

std::int64_t AssemblyTokenizer::integer() {
  std::string_view rest = rest_;
  const auto value = text::take_number<std::int64_t>(rest);
  if (!value || *value > most || *value < -most) fail("a whole number within 2^53");
  rest_ = rest;
  skip();
  return *value;
}

double AssemblyTokenizer::real() {
  const auto value = text::take_number<double>(rest_);
  if (!value) fail("a number");
  skip();
  return *value;
}

void AssemblyTokenizer::fail(std::string_view expected) const {
  const std::string_view at = rest_.substr(0, 40);
  text::refuse("line {}: expected {} {}", number_, expected,
               at.empty() ? "before the end" : fmt::format("at '{}'", at));
}

void AssemblyTokenizer::fail_range(std::int64_t value, std::int64_t low, std::int64_t high) const {
  text::refuse("line {}: {} is not within {} to {}", number_, value, low, high);
}

}  // namespace trellis::sim::core
