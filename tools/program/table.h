// A table of results: aligned text for people, or one JSON object for programs, from the same cells.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace trellis::tools {

enum class Align { left, right };

struct Column {
  std::string name;       // words with spaces; a JSON key has underscores instead
  std::string unit = {};  // SI, or "" for none: "s", "B", "B/s"
  Align align = Align::right;
};

inline Column left(std::string name) { return {.name = std::move(name), .align = Align::left}; }

// In text, a double of a column with a unit gets an SI prefix: 0.0000123 s is 12.3 us. In JSON the key names the unit,
// always the same one: time_us, busbw_GBps, size_bytes (and bytes for a column of that name).
using Cell = std::variant<std::string, std::int64_t, double, bool>;

class Table {
 public:
  Table(std::string name, std::vector<Column> columns);

  // One cell for each column, else throws std::invalid_argument.
  void add(std::vector<Cell> row);

  // A header, and a line for each row.
  std::string text() const;

  // {"name": [{"key": cell, ...}, ...]}; as text, with a newline at the end.
  nlohmann::ordered_json object() const;
  std::string json() const;

 private:
  std::string name_;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace trellis::tools
