#include "train/config/parse_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <stdexcept>

namespace trellis::train {

void refuse(const KeyValue& v, const std::string& expected) {
  throw std::invalid_argument(fmt::format("{} is '{}': expected {}", v.key, fmt::join(v.words, ", "), expected));
}

const std::string& word(const KeyValue& v) {
  if (v.list || v.words.size() != 1) refuse(v, "one value");
  return v.words[0];
}

namespace {

template <class Number>
Number number(const KeyValue& v, const std::string& text, const char* expected) {
  Number n{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) refuse(v, expected);
  return n;
}

}  // namespace

double decimal(const KeyValue& v, const std::string& text, const char* expected) {
  return number<double>(v, text, expected);
}

void parse(const KeyValue& v, bool& to) {
  const std::string& w = word(v);
  if (w == "true" || w == "True" || w == "1" || w == "yes" || w == "on") return void(to = true);
  if (w == "false" || w == "False" || w == "0" || w == "no" || w == "off") return void(to = false);
  refuse(v, "true or false");
}
void parse(const KeyValue& v, std::string& to) { to = word(v); }
void parse(const KeyValue& v, double& to) {
  to = word(v) == "inf" || word(v) == ".inf" ? HUGE_VAL : number<double>(v, word(v), "a number");
}
void parse(const KeyValue& v, std::size_t& to) { to = number<std::size_t>(v, word(v), "a whole number of 0 or more"); }
void parse(const KeyValue& v, std::int64_t& to) { to = number<std::int64_t>(v, word(v), "a whole number"); }
void parse(const KeyValue& v, Rank& to) { to = number<Rank>(v, word(v), "a whole number"); }
void parse(const KeyValue& v, std::vector<std::string>& to) { to = v.words; }
void parse(const KeyValue& v, std::vector<std::size_t>& to) {
  to.clear();
  for (const std::string& w : v.words) {
    // The last layer of a stage by number, or by name: model.layers.3.
    const std::size_t dot = w.rfind('.');
    to.push_back(number<std::size_t>(v, dot == w.npos ? w : w.substr(dot + 1), "layers by number or name"));
  }
}

}  // namespace trellis::train
