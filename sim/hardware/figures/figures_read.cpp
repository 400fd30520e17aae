#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "sim/hardware/figures/figure_units.h"
#include "sim/hardware/figures/figures.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

constexpr std::string_view form = "KEY = VALUE [UNIT] [LOW..HIGH [UNIT]] | MARK | SOURCE";

std::string_view without_comment(std::string_view line) {
  for (std::size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1))
    if (at == 0 || line[at - 1] == '|' || text::blanks.find(line[at - 1]) != text::blanks.npos)
      return line.substr(0, at);
  return line;
}

// Removes and returns the text before the mark, or all of it.
std::string_view take_to(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.find_first_of(mark);
  const std::string_view before = text::trimmed(text.substr(0, at));
  text = at == text.npos ? std::string_view{} : text::trimmed(text.substr(at + 1));
  return before;
}

bool is_key(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, text::in_name) && key.front() != '.' && key.back() != '.';
}

class Reader {
 public:
  Reader(std::map<std::string, Figure, std::less<>>& figures, const Figures::Others& others)
      : figures_(figures), others_(others) {}

  void file(std::string_view text, std::string_view name, std::size_t first = 1) {
    files_.push_back({name, first, {}, false});
    for (; !text.empty(); ++files_.back().number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      line(text::trimmed(without_comment(text.substr(0, end))));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    files_.pop_back();
  }

 private:
  struct File {
    std::string_view name;  // empty: the file to be read
    std::size_t number = 0;
    std::set<std::string_view> keys;
    bool likes = false;
  };

  // Names the line, and the file if `like` led to another one.
  template <class... T>
  [[noreturn]] void fail(fmt::format_string<T...> fault, T&&... values) const {
    const File& file = files_.back();
    text::refuse("{}line {}: {}", file.name.empty() ? "" : fmt::format("'{}' ", file.name), file.number,
                 fmt::format(fault, std::forward<T>(values)...));
  }

  void line(std::string_view text) {
    if (text.empty()) return;
    if (text.find('=') == text.npos && (text.starts_with("like ") || text.starts_with("like\t")))
      return like(text::trimmed(text.substr(5)));
    figure(text);
  }

  void like(std::string_view name) {
    if (files_.back().likes || !files_.back().keys.empty())
      fail("'like {}' expected once, before the first figure", name);
    files_.back().likes = true;
    if (!others_) fail("'like {}': there are no other files here", name);
    const auto same = [&](const File& f) { return f.name == name; };
    if (std::ranges::any_of(files_, same)) {
      std::string chain;
      for (auto f = std::ranges::find_if(files_, same); f != files_.end(); ++f) chain += fmt::format("{} -> ", f->name);
      fail("'like {}' leads back to itself: {}{}", name, chain, name);
    }
    std::string_view text;
    try {
      text = others_(name);
    } catch (const std::invalid_argument& e) {
      fail("'like {}': {}", name, e.what());
    }
    file(text, name);
  }

  void figure(std::string_view text) {
    std::string_view rest = text;
    const bool complete = std::ranges::count(text, '=') > 0 && std::ranges::count(text, '|') >= 2;
    if (!complete) fail("'{}': expected {}", text, form);
    const std::string_view key = take_to(rest, "=");
    if (!is_key(key)) fail("'{}' is not a key: expected letters, digits, '_', '-' and '.' between", key);
    if (!files_.back().keys.insert(key).second) fail("{} was given above: expected once a file", key);
    Figure figure;
    const std::string_view value = take_to(rest, "|"), mark = take_to(rest, "|");
    const bool ranged = read_value(value, figure);
    read_mark(mark, figure);
    if (rest.empty()) fail("{} without a source: expected {}", key, form);
    figure.source = rest;
    if (files_.size() == 1) figure.line = files_.back().number;
    if (figure.mark == FigureProvenance::assumed && !ranged)
      fail("{} is assumed: expected its range LOW..HIGH after the value", key);
    if (figure.mark == FigureProvenance::documented && ranged)
      fail("{} is documented: expected no range after the value", key);
    figures_.insert_or_assign(std::string(key), std::move(figure));
  }

  double number(std::string_view text) const {
    const auto number = text::finite_number(text);
    if (!number) fail("'{}' is not a finite number", text);
    return *number;
  }

  const Unit& unit(std::string_view name) const {
    const Unit* unit = find_unit(name);
    if (unit == nullptr) fail("'{}' is not a unit: expected {}", name, unit_names());
    return *unit;
  }

  // `VALUE [UNIT] [LOW..HIGH [UNIT]]`; returns true if there was a range.
  bool read_value(std::string_view text, Figure& figure) const {
    std::vector<std::string_view> words;
    while (!text.empty()) words.push_back(take_to(text, text::blanks));
    std::erase(words, std::string_view{});
    const auto range = std::ranges::find_if(words, [](std::string_view w) { return w.find("..") != w.npos; });
    const auto before = range - words.begin(), after = words.end() - range;
    if (before < 1 || before > 2 || after > 2) fail("expected VALUE [UNIT] [LOW..HIGH [UNIT]] before '|'");
    const Unit& own = unit(before == 2 ? words[1] : std::string_view{});
    figure.dimension = own.dimension;
    figure.value = figure.low = figure.high = checked(number(words[0]), own);
    if (range == words.end()) return false;

    const Unit& wide = after == 2 ? unit(range[1]) : own;
    if (wide.dimension != own.dimension) fail("the range is in '{}', the value in '{}'", wide.name, own.name);
    const std::size_t dots = range->find("..");
    figure.low = checked(number(range->substr(0, dots)), wide);
    figure.high = checked(number(range->substr(dots + 2)), wide);
    if (!(figure.low <= figure.value && figure.value <= figure.high))
      fail("{} lies outside its range {}", words[0], *range);
    return true;
  }

  double checked(double number, const Unit& unit) const {
    const double value = in_own_unit(number, unit);
    if (!std::isfinite(value)) fail("{} {} is beyond all numbers", number, unit.name);
    if (unit.dimension != Dimension::number && unit.dimension != Dimension::time && number < 0)
      fail("{} {} is negative", number, unit.name);
    if (unit.dimension == Dimension::frequency && number == 0) fail("a frequency of 0");
    return value;
  }

  void read_residual(Figure& figure) const {
    const std::string word = figure.records.front();
    const auto percent = text::finite_number(std::string_view(word).substr(0, word.size() - 1));
    if (!percent || *percent <= 0 || *percent >= 100)
      fail("'{}' is no residual: expected a part above 0% and below 100%", word);
    figure.residual = *percent / 100;
    figure.records.erase(figure.records.begin());
    if (figure.records.empty()) fail("expected the records that it is fitted to after 'fitted {}'", word);
  }

  void read_mark(std::string_view text, Figure& figure) const {
    const std::string_view word = take_to(text, text::blanks);
    if (word == name(FigureProvenance::fitted)) {
      figure.mark = FigureProvenance::fitted;
      for (; !text.empty();) figure.records.emplace_back(take_to(text, text::blanks));
      if (!figure.records.empty() && figure.records.front().ends_with('%')) read_residual(figure);
      if (figure.records.empty()) fail("expected the records that it is fitted to after 'fitted'");
      return;
    }
    if (word == name(FigureProvenance::assumed))
      figure.mark = FigureProvenance::assumed;
    else if (word != name(FigureProvenance::documented))
      fail("'{}' is not a mark: expected documented, fitted RECORD... or assumed", word);
    if (!text.empty()) fail("'{}' after '{}': expected '|'", text, word);
  }

  std::map<std::string, Figure, std::less<>>& figures_;
  const Figures::Others& others_;
  std::vector<File> files_;
};

}  // namespace

Figures Figures::read(std::string_view text, const Others& others, std::size_t first) {
  Figures figures;
  Reader(figures.figures_, others).file(text, {}, first);
  return figures;
}

}  // namespace trellis::sim
