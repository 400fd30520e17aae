#include "tools/program/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/refuse.h"
#include "tools/program/json_text.h"

namespace trellis::tools {
namespace {

struct Prefix {
  double scale;
  const char* symbol;
};

constexpr std::array<Prefix, 10> prefixes = {{{1e15, "P"},
                                              {1e12, "T"},
                                              {1e9, "G"},
                                              {1e6, "M"},
                                              {1e3, "k"},
                                              {1, ""},
                                              {1e-3, "m"},
                                              {1e-6, "u"},
                                              {1e-9, "n"},
                                              {1e-12, "p"}}};

std::string with_prefix(double value, const std::string& unit) {
  // Four digits are shown, so 999.96 must already use the next prefix.
  const double size = std::abs(value) * (1 + 5e-5);
  const auto fits = std::find_if(prefixes.begin(), prefixes.end(), [&](const Prefix& p) { return size >= p.scale; });
  if (value == 0 || !std::isfinite(value) || fits == prefixes.end()) return fmt::format("{:.4g} {}", value, unit);
  return fmt::format("{:.4g} {}{}", value / fits->scale, fits->symbol, unit);
}

std::string shown(const Cell& cell, const Column& column) {
  if (const auto* words = std::get_if<std::string>(&cell)) return *words;
  if (const auto* yes = std::get_if<bool>(&cell)) return *yes ? "yes" : "no";
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
  const double value = std::get<double>(cell);
  return column.unit.empty() ? fmt::format("{:.4g}", value) : with_prefix(value, column.unit);
}

// Width on a terminal: continuation bytes of UTF-8 take no space.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// A unit's name in a JSON key, and its size in SI units: programs get the units in which people compare.
struct KeyUnit {
  const char* unit;
  const char* key;
  double scale;
};

constexpr std::array<KeyUnit, 3> key_units = {{{"s", "us", 1e6}, {"B/s", "GBps", 1e-9}, {"B", "bytes", 1}}};

KeyUnit key_unit(const Column& column) {
  const auto found =
      std::find_if(key_units.begin(), key_units.end(), [&](const KeyUnit& u) { return column.unit == u.unit; });
  return found == key_units.end() ? KeyUnit{"", column.unit.c_str(), 1} : *found;
}

std::string key(const Column& column) {
  std::string key = column.name;
  std::replace(key.begin(), key.end(), ' ', '_');
  const std::string unit = key_unit(column).key;
  return unit.empty() || key == unit ? key : key + "_" + unit;
}

nlohmann::ordered_json in_key_unit(const Cell& cell, const Column& column) {
  if (const auto* value = std::get_if<double>(&cell)) return *value * key_unit(column).scale;
  return std::visit([](const auto& value) { return nlohmann::ordered_json(value); }, cell);
}

using Line = std::vector<std::string>;

std::string laid_out(const std::vector<Line>& lines, const std::vector<Column>& columns) {
  std::vector<std::size_t> widths(columns.size(), 0);
  for (const Line& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], width(line[c]));
  }
  std::string text;
  for (const Line& line : lines) {
    std::string out;
    for (std::size_t c = 0; c < line.size(); ++c) {
      const std::string gap(widths[c] - width(line[c]), ' ');
      out += c == 0 ? "" : "  ";
      out += columns[c].align == Align::left ? line[c] + gap : gap + line[c];
    }
    text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

Table::Table(std::string name, std::vector<Column> columns) : name_(std::move(name)), columns_(std::move(columns)) {}

void Table::add(std::vector<Cell> row) {
  if (row.size() != columns_.size()) {
    text::refuse("table '{}' has {} columns, its row {} cells", name_, columns_.size(), row.size());
  }
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<Line> lines(1);
  for (const Column& column : columns_) {
    // Whole numbers have no prefix, so the header shows their unit.
    const auto c = static_cast<std::size_t>(&column - columns_.data());
    const bool whole = std::any_of(rows_.begin(), rows_.end(),
                                   [c](const auto& row) { return std::holds_alternative<std::int64_t>(row[c]); });
    lines[0].push_back(whole && !column.unit.empty() ? fmt::format("{} ({})", column.name, column.unit) : column.name);
  }
  for (const auto& row : rows_) {
    Line& line = lines.emplace_back();
    for (std::size_t c = 0; c < row.size(); ++c) line.push_back(shown(row[c], columns_[c]));
  }
  return laid_out(lines, columns_);
}

nlohmann::ordered_json Table::object() const {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : rows_) {
    nlohmann::ordered_json object;
    for (std::size_t c = 0; c < row.size(); ++c) {
      object[key(columns_[c])] = in_key_unit(row[c], columns_[c]);
    }
    rows.push_back(std::move(object));
  }
  nlohmann::ordered_json whole;
  whole[name_] = std::move(rows);
  return whole;
}

std::string Table::json() const { return json_text(object()); }

}  // namespace trellis::tools
