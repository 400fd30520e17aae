// One published measurement, and the simulator's answer to it.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/chip/chip.h"
#include "sim/hardware/figures/model_error_range.h"

namespace trellis::measure {

struct Record {
  std::string id, generation, instance, what, unit, source;
  nlohmann::json parameters = nlohmann::json::object();
  double value = 0;

  // A parameter as a number or a word, if it is one.
  std::optional<double> number(std::string_view key) const;
  std::optional<std::int32_t> count(std::string_view key) const;  // throws invalid_argument unless it fits 32 bits
  std::string word(std::string_view key) const;                   // "" when absent
  bool says(std::string_view text) const;                         // whether `what` contains it, ignoring case
  std::string kind() const;                                       // the id up to the first dot
  // Names the group of records that were measured together, and so may share a fault: those of a collective on so many
  // ranks, or of a kernel, from one source.
  std::string configuration() const;
  std::string publisher() const;  // the page or repository of its source
};

// A number of a record as a count. Throws invalid_argument, naming it, unless it is whole and from 0 to 2^31 - 1.
std::int32_t whole_count(std::string_view what, double value);

// Throws invalid_argument when the text is not a list of records, naming the record and the field.
std::vector<Record> read_records(std::string_view json, std::string_view file);

// The part of an answer's time that is the launch of a collective: a figure of the era, with its range.
struct LaunchOverhead {
  std::string figure;
  double value = 0;
  sim::ValueRange range = {};
  double growth = 1;   // a factor on the figure, for the number of ranks
  double further = 0;  // added to that, for the physical cores of a logical one
  double part = 1;     // the fraction of a launch that the call before does not hide, where calls are queued
  double rest = 0;     // the answer's time besides the launch

  // The whole time of a call whose launch figure has that value and that takes `beside` once it has started. The
  // launch's hidden part overlaps `beside`, so the longer of the two counts; as both vary from call to call, the mean
  // passes smoothly from the one to the other.
  double with(double value_of_figure, double beside) const;
  double without(double time, double beside) const;  // the figure with which the whole takes `time`
};

// The answer to a record: a value in its unit and how it was found, or why there is none.
struct RecordAnswer {
  std::optional<double> simulated = {};
  sim::ValueRange range = {};                 // of the value, over figures that are not known; 0, 0: none was tried
  std::optional<LaunchOverhead> launch = {};  // the launch, in the record's unit; `range` leaves its uncertainty out
  std::string kind = {};                      // whose error.KIND widens the range; "": the record's kind
  std::string by = {};                        // "program matmul, stage tiled"
  std::string why_not = {};                   // when nothing was simulated
  std::vector<std::string> fitted_to = {};    // records that the hardware's data was fitted to

  static RecordAnswer no(std::string why) { return {.why_not = std::move(why)}; }
};

// A model that answers one kind of record. It returns null for other kinds. A constant of this type registers it.
struct RegisteredRecordModel {
  explicit RegisteredRecordModel(std::string name,
                                 std::function<std::optional<RecordAnswer>(const Record&, const std::vector<Record>&)>);
};

RecordAnswer answer(const Record&, const std::vector<Record>& all);

// The chip that a record is about, by its generation or instance; none when it names neither.
std::optional<sim::ChipSpec> chip_of(const Record&);

// A time in the unit of the record (ns, us, ms, s); none when that is not a unit of time.
std::optional<double> time_in(std::string_view unit, sim::Time);

std::optional<double> seconds_of(std::string_view unit);  // seconds in such a unit

}  // namespace trellis::measure
