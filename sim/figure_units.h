// The units in which data files state figures: `12.8 GB/s` is a rate of 12.8e9 bytes a second.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/figures.h"

namespace trellis::sim {

struct Unit {
  std::string_view name;  // empty: a plain number
  Dimension dimension = Dimension::number;
  double size = 1;  // in the dimension's own unit: seconds, bytes, bytes a second, hertz, cycles
};

const Unit* find_unit(std::string_view name);  // nullptr: no such unit
std::string unit_names();                      // for messages

// A finite decimal number and nothing else.
std::optional<double> read_number(std::string_view);

double in_own_unit(double number, const Unit&);

// The unit in which the value is written shortest and reads back as the same.
const Unit& unit_for(double value, Dimension);
const Unit& own_unit(Dimension);  // seconds, bytes, ...: every value reads back in it

// The number to be written before the unit; nothing when it would not read back as the same value.
std::optional<std::string> spelled(double value, const Unit&);

}  // namespace trellis::sim
