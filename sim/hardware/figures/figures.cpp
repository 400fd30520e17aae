#include "sim/hardware/figures/figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/hardware/figures/figure_units.h"
#include "text/nearest.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

std::vector<std::string> keys_of(const std::map<std::string, Figure, std::less<>>& figures) {
  std::vector<std::string> all;
  for (const auto& [key, figure] : figures) all.push_back(key);
  return all;
}

// For a missing key: the known keys with the same first word, or all first words.
std::string known_keys(const std::map<std::string, Figure, std::less<>>& figures, std::string_view key) {
  const auto head = [](std::string_view k) { return k.substr(0, k.find('.')); };
  std::vector<std::string_view> near, heads;
  for (const auto& [known, figure] : figures) {
    if (head(known) == head(key)) near.push_back(known);
    if (heads.empty() || heads.back() != head(known)) heads.push_back(head(known));
  }
  if (figures.empty()) return "there are none";
  return near.empty() ? fmt::format("expected one that begins with {}", fmt::join(heads, ", "))
                      : fmt::format("expected one of {}", fmt::join(near, ", "));
}

std::string value_text(const Figure& f) {
  const Unit& unit = unit_for(f.value, f.dimension);
  std::string text = *spelled(f.value, unit);
  if (!unit.name.empty()) text += fmt::format(" {}", unit.name);
  if (f.mark == FigureProvenance::documented ||
      (f.mark == FigureProvenance::fitted && f.low == f.value && f.high == f.value))
    return text;
  const auto low = spelled(f.low, unit), high = spelled(f.high, unit);
  if (low && high) return text + fmt::format(" {}..{}", *low, *high);
  const Unit& own = own_unit(f.dimension);
  return text + fmt::format(" {}..{} {}", *spelled(f.low, own), *spelled(f.high, own), own.name);
}

}  // namespace

std::string_view name(FigureProvenance mark) { return text::word_of(mark, {"documented", "fitted", "assumed"}); }

std::string_view name(Dimension dimension) {
  return text::word_of(dimension, {"number", "time", "bytes", "rate", "frequency", "cycles"});
}

bool Figures::has(std::string_view key) const { return figures_.find(key) != figures_.end(); }

const Figure& Figures::at(std::string_view key) const {
  const auto found = figures_.find(key);
  if (found == figures_.end())
    text::refuse("the figure '{}' is missing: expected a line `{} = VALUE | MARK | SOURCE`", key, key);
  if (used_.find(key) == used_.end()) used_.emplace(key);
  return found->second;
}

const Figure& Figures::used(std::string_view key, Dimension dimension) const {
  const Figure& figure = at(key);
  if (figure.dimension != dimension)
    text::refuse("{} is a {}: expected a {}", key, name(figure.dimension), name(dimension));
  return figure;
}

double Figures::number(std::string_view key) const { return used(key, Dimension::number).value; }
double Figures::bytes(std::string_view key) const { return used(key, Dimension::bytes).value; }
double Figures::rate(std::string_view key) const { return used(key, Dimension::rate).value; }
double Figures::frequency(std::string_view key) const { return used(key, Dimension::frequency).value; }
double Figures::cycles(std::string_view key) const { return used(key, Dimension::cycles).value; }

std::int32_t Figures::count(std::string_view key) const {
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const double value = number(key);
  if (value < 0 || value != std::floor(value) || value > most)
    text::refuse("{} is {:.17g}: expected a whole number from 0 to {}", key, value, most);
  return static_cast<std::int32_t>(value);
}

Time Figures::time(std::string_view key) const {
  const double seconds = used(key, Dimension::time).value;
  constexpr double most = 1e5;  // a few can be added before the sum is compared with longest_time
  if (std::abs(seconds) > most) text::refuse("{} is {} s: expected at most {:g}", key, seconds, most);
  return std::llround(seconds * 1e12);
}

void Figures::set(std::string_view key, double value) {
  const auto found = figures_.find(key);
  if (found == figures_.end())
    text::refuse("no figure '{}': {}{}", key, known_keys(figures_, key), text::did_you_mean(key, keys_of(figures_)));
  Figure& figure = found->second;
  const bool may_be_negative = figure.dimension == Dimension::number || figure.dimension == Dimension::time;
  if (!std::isfinite(value) || (value < 0 && !may_be_negative)) text::refuse("{} cannot be {}", key, value);
  const bool one_value = figure.low == figure.high;
  figure.low = one_value ? value : std::min(figure.low, value);
  figure.high = one_value ? value : std::max(figure.high, value);
  figure.value = value;
}

void Figures::set(std::string_view key, std::string_view text) {
  const std::size_t digits = text.find_last_of("0123456789.") + 1;  // the unit follows, with or without a space
  const auto number = text::finite_number(text.substr(0, digits));
  std::string_view word = text.substr(digits);
  word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
  const Unit* unit = find_unit(word);
  const auto found = figures_.find(key);
  if (found != figures_.end() && (!number || unit == nullptr || unit->dimension != found->second.dimension))
    text::refuse("{} cannot be '{}': expected a {}, such as '{}'", key, text, sim::name(found->second.dimension),
                 value_text(Figure{found->second.value, found->second.dimension}));
  set(key, found == figures_.end() ? 0 : in_own_unit(*number, *unit));
}

// With a time below 0 an event would come before its cause.
void Figures::expect_times(std::string_view what) const {
  for (const auto& [key, figure] : figures_)
    if (figure.dimension == Dimension::time && figure.low < 0 && !key.starts_with("operation.") &&
        !key.starts_with("step."))
      text::refuse("{}: {}{} must be at least 0", what, figure.value < 0 ? "" : "the range of ", key);
}

void Figures::expect_all_used(std::string_view what) const {
  for (const auto& [key, figure] : figures_)
    if (used_.find(key) == used_.end()) text::refuse("{}: nothing asks for a figure '{}'; is it misspelt?", what, key);
}

std::string Figures::text() const {
  std::string text;
  for (const auto& [key, f] : figures_)
    text += fmt::format("{} = {} | {}{}{}{} | {}\n", key, value_text(f), name(f.mark),
                        f.residual > 0 ? fmt::format(" {:.6g}%", 100 * f.residual) : "", f.records.empty() ? "" : " ",
                        fmt::join(f.records, " "), f.source);
  return text;
}

}  // namespace trellis::sim
