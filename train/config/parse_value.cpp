#include "train/config/parse_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::train {

void refuse(const KeyValue& v, const std::string& expected) {
  text::refuse("{} is '{}': expected {}", v.key, fmt::join(v.words, ", "), expected);
}

const std::string& word(const KeyValue& v) {
  if (v.list || v.words.size() != 1) refuse(v, "one value");
  return v.words[0];
}

namespace {

constexpr double most_exact = 9007199254740992;  // 2^53: every whole number to here is a double

std::string whole_words(const AllowedRange& r) { return fmt::format("a whole number, {}", r.words()); }
std::string number_words(const AllowedRange& r) { return fmt::format("a number, {}", r.words()); }

template <class Whole>
std::optional<Whole> whole(const std::string& text) {
  if (const auto n = text::number<Whole>(text)) return n;
  const auto d = text::number<double>(text);
  if (!d || *d != std::floor(*d) || std::fabs(*d) > most_exact) return std::nullopt;
  if (*d < 0 && std::is_unsigned_v<Whole>) return std::nullopt;
  return static_cast<Whole>(*d);
}

template <class Whole>
Whole whole_in(const KeyValue& v, const std::string& text, const AllowedRange& range, const std::string& expected) {
  const auto n = whole<Whole>(text);
  if (!n || !range.has(static_cast<double>(*n))) refuse(v, expected);
  return *n;
}

}  // namespace

double decimal(const KeyValue& v, const std::string& text, const AllowedRange& range) {
  const std::optional<double> n = text == ".inf" ? HUGE_VAL : text::number<double>(text);
  if (!n || !range.has(*n)) refuse(v, number_words(range));
  return *n;
}

void parse(const KeyValue& v, bool& to) {
  const std::string& w = word(v);
  if (w == "true" || w == "True" || w == "1" || w == "yes" || w == "on") return void(to = true);
  if (w == "false" || w == "False" || w == "0" || w == "no" || w == "off") return void(to = false);
  refuse(v, "true or false");
}
void parse(const KeyValue& v, std::string& to) { to = word(v); }
void parse(const KeyValue& v, std::vector<std::string>& to) { to = v.words; }
void parse(const KeyValue& v, double& to, const AllowedRange& r) { to = decimal(v, word(v), r); }
void parse(const KeyValue& v, std::size_t& to, const AllowedRange& r) {
  to = whole_in<std::size_t>(v, word(v), r, whole_words(r));
}
void parse(const KeyValue& v, std::int64_t& to, const AllowedRange& r) {
  to = whole_in<std::int64_t>(v, word(v), r, whole_words(r));
}
void parse(const KeyValue& v, Rank& to, const AllowedRange& r) { to = whole_in<Rank>(v, word(v), r, whole_words(r)); }
void parse(const KeyValue& v, std::vector<double>& to, const AllowedRange& r) {
  to.clear();
  for (const std::string& w : v.words) to.push_back(decimal(v, w, r));
}
void parse(const KeyValue& v, std::vector<std::size_t>& to, const AllowedRange& r) {
  to.clear();
  for (const std::string& w : v.words) {
    // The last layer of a stage by number, or by name: model.layers.3.
    const std::size_t dot = w.rfind('.');
    to.push_back(whole_in<std::size_t>(v, dot == w.npos ? w : w.substr(dot + 1), r,
                                       fmt::format("whole numbers, or layers by name: {}", r.words())));
  }
}

std::string misfit(double value, const AllowedRange& r) { return r.has(value) ? "" : number_words(r); }
std::string misfit(std::size_t value, const AllowedRange& r) {
  return r.has(static_cast<double>(value)) ? "" : whole_words(r);
}
std::string misfit(std::int64_t value, const AllowedRange& r) {
  return r.has(static_cast<double>(value)) ? "" : whole_words(r);
}
std::string misfit(Rank value, const AllowedRange& r) { return misfit(std::int64_t{value}, r); }

namespace {
template <class T>
std::string misfit_of_list(const std::vector<T>& values, const AllowedRange& r) {
  for (const T each : values)
    if (std::string wrong = misfit(each, r); !wrong.empty()) return wrong;
  return "";
}
}  // namespace

std::string misfit(const std::vector<std::size_t>& values, const AllowedRange& r) { return misfit_of_list(values, r); }
std::string misfit(const std::vector<double>& values, const AllowedRange& r) { return misfit_of_list(values, r); }

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(std::size_t value) { return fmt::format("{}", value); }
std::string text_of(std::int64_t value) { return fmt::format("{}", value); }
std::string text_of(Rank value) { return fmt::format("{}", value); }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const std::vector<std::string>& values) { return fmt::format("{}", fmt::join(values, ", ")); }
std::string text_of(const std::vector<double>& values) { return fmt::format("{}", fmt::join(values, ", ")); }
std::string text_of(const std::vector<std::size_t>& values) { return fmt::format("{}", fmt::join(values, ", ")); }

}  // namespace trellis::train
