// A user's measurements: comma-separated values with a header line, or the table that nccom-test prints.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::measure {

struct TableRow {
  std::string place;                         // "runs.csv:7"
  std::map<std::string, std::string> cells;  // by column; empty cells are absent

  const std::string* find(std::string_view column) const;
  // Throw invalid_argument that names the place, the column, its value and what was expected.
  const std::string& word(std::string_view column) const;
  double number(std::string_view column) const;  // above 0
  // The first column that is there, in seconds: "time(us)", "time:avg(us)", "step_ms", "seconds".
  std::optional<double> seconds() const;
};

struct MeasuredTable {
  std::vector<std::string> columns;
  std::vector<TableRow> rows;
};

// Throws invalid_argument, with the file and the line, for text without a header line, rows with more or fewer columns,
// and quotes that do not end. Lines that begin with '#', and those of nccom-test around its table, are left out.
MeasuredTable read_table(std::string_view text, std::string_view file);

}  // namespace trellis::measure
