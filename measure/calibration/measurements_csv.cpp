#include "measure/calibration/measurements_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "text/number_parsing.h"
#include "text/printable.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::measure {
namespace {

constexpr std::size_t most_columns = 200, most_rows = 100'000;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // of UTF-8, which spreadsheets write

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<std::string> split_quoted(std::string_view line, char by, const std::string& place) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += c, ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (c == by && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  if (quoted) text::refuse("{}: a quote that does not end", place);
  for (std::string& cell : cells) cell = std::string(text::trimmed(cell));
  return cells;
}

std::vector<std::string> cells_of(std::string_view line, char by, const std::string& place) {
  if (by != ' ') return split_quoted(line, by, place);
  std::vector<std::string> cells;
  for (const std::string_view word : text::words(line)) cells.emplace_back(word);
  return cells;
}

// An algorithm has several words, "ring channels=2". Where it is the last column, it has all that is left of a line.
void join_algorithm(std::vector<std::string>& cells, const std::vector<std::string>& columns) {
  if (columns.back() != "algorithm" || cells.size() <= columns.size()) return;
  const auto last = cells.begin() + static_cast<std::ptrdiff_t>(columns.size()) - 1;
  *last = fmt::format("{}", fmt::join(last, cells.end(), " "));
  cells.erase(last + 1, cells.end());
}

bool is_nccom_head(std::string_view line) { return lower(line).find("size(b)") != std::string::npos; }

// nccom-test prints other lines before and after its table.
bool is_talk(std::string_view line) { return line.find(':') != line.npos && line.find(',') == line.npos; }

}  // namespace

const std::string* TableRow::find(std::string_view column) const {
  const auto found = cells.find(std::string(column));
  return found == cells.end() ? nullptr : &found->second;
}

const std::string& TableRow::word(std::string_view column) const {
  if (const std::string* found = find(column)) return *found;
  text::refuse("{}: nothing in column {}", place, column);
}

double TableRow::number(std::string_view column) const {
  const std::string& said = word(column);
  const auto value = text::number<double>(said, 0);
  if (!value || !(*value > 0))
    text::refuse("{}: {} is '{}': expected a number above 0", place, column, text::printable(said));
  return *value;
}

std::optional<double> TableRow::seconds() const {
  struct Column {
    std::string_view name;
    double unit;
  };
  constexpr std::array columns = {Column{"seconds", 1},         Column{"step_seconds", 1},    Column{"step(s)", 1},
                                  Column{"step_ms", 1e-3},      Column{"step(ms)", 1e-3},     Column{"time(s)", 1},
                                  Column{"time(ms)", 1e-3},     Column{"time(us)", 1e-6},     Column{"time(ns)", 1e-9},
                                  Column{"time:avg(us)", 1e-6}, Column{"time:avg(ms)", 1e-3}, Column{"time_us", 1e-6},
                                  Column{"time:p50(us)", 1e-6}};
  for (const Column& c : columns)
    if (find(c.name) != nullptr) return number(c.name) * c.unit;
  return {};
}

MeasuredTable read_table(std::string_view text, std::string_view file) {
  MeasuredTable table;
  char by = 0;
  std::size_t line_number = 0;
  const bool talks = is_nccom_head(text);
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  for (const std::string_view raw : text::split(text, '\n')) {
    const std::string place = fmt::format("{}:{}", file, ++line_number);
    const std::string_view line = text::trimmed(raw);
    if (line.empty() || line.front() == '#') continue;
    if (table.columns.empty()) {
      if (talks && !is_nccom_head(line)) continue;
      by = line.find(',') != line.npos ? ',' : line.find('\t') != line.npos ? '\t' : ' ';
      for (const std::string& cell : cells_of(line, by, place)) table.columns.push_back(lower(cell));
      std::set<std::string> once;
      for (const std::string& column : table.columns)
        if (column.empty() || !once.insert(column).second)
          text::refuse(
              "{}: column '{}': expected a head in which each column has a name of "
              "its own",
              place, text::printable(column));
      if (table.columns.size() > most_columns)
        text::refuse("{}: {} columns: expected at most {}", place, table.columns.size(), most_columns);
      continue;
    }
    if (talks && (is_talk(line) || is_nccom_head(line))) continue;
    std::vector<std::string> cells = cells_of(line, by, place);
    if (by == ' ') join_algorithm(cells, table.columns);
    if (cells.size() != table.columns.size())
      text::refuse("{}: {} columns: expected {}, as in the head: {}", place, cells.size(), table.columns.size(),
                   text::printable(fmt::format("{}", fmt::join(table.columns, ", "))));
    if (table.rows.size() == most_rows) text::refuse("{}: more than {} rows", place, most_rows);
    TableRow& row = table.rows.emplace_back(TableRow{.place = place, .cells = {}});
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (!cells[i].empty() && cells[i] != "-") row.cells[table.columns[i]] = cells[i];
  }
  if (table.rows.empty()) text::refuse("{}: no row of measurements: expected a head and rows below it", file);
  return table;
}

}  // namespace trellis::measure
