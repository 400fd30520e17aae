// One published measurement, and what the simulator says to it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/chip.h"

namespace trellis::tools {

struct Record {
  std::string id, generation, instance, what, unit, source;
  nlohmann::json parameters = nlohmann::json::object();
  double value = 0;

  // A parameter as a number or a word, where there is one of that sort.
  std::optional<double> number(std::string_view key) const;
  std::string word(std::string_view key) const;  // "" when absent
  bool says(std::string_view text) const;        // whether `what` holds it, whatever the case
  std::string kind() const;                      // the id up to the first dot
};

// Throws invalid_argument for what is no list of records, naming the record and the field.
std::vector<Record> read_records(std::string_view json, std::string_view file);

// What came of a record: a value in its unit and how it came about, or why there is none.
struct Answer {
  std::optional<double> simulated = {};
  std::string by = {};                      // "program matmul, stage tiled"
  std::string why_not = {};                 // where nothing was simulated
  std::vector<std::string> fitted_to = {};  // records that the hardware's data was fitted to

  static Answer no(std::string why) { return {.why_not = std::move(why)}; }
};

// A way to answer records of one sort. Null: not of that sort, ask another. One constant of this type registers it.
struct Model {
  explicit Model(std::string name, std::function<std::optional<Answer>(const Record&, const std::vector<Record>&)>);
};

Answer answer(const Record&, const std::vector<Record>& all);

// The chip that a record speaks of, by its generation or instance; none when neither says.
std::optional<sim::ChipSpec> chip_of(const Record&);

// A time in the unit of the record (ns, us, ms, s); none where that is no unit of time.
std::optional<double> time_in(std::string_view unit, sim::Time);

}  // namespace trellis::tools
