// The units of figures in data files: `12.8 GB/s` is a rate of 12.8e9 bytes a second.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/hardware/figures/figures.h"

namespace trellis::sim {

struct Unit {
  std::string_view name;  // empty: a plain number
  Dimension dimension = Dimension::number;
  double size = 1;  // in the dimension's base unit: seconds, bytes, bytes a second, hertz, cycles
};

const Unit* find_unit(std::string_view name);  // nullptr: unknown unit
std::string unit_names();                      // for messages

double in_own_unit(double number, const Unit&);

// The unit in which the value is written shortest and still reads back as the same value.
const Unit& unit_for(double value, Dimension);
const Unit& own_unit(Dimension);  // the base unit: seconds, bytes and so on; every value reads back in it

// The number to write before the unit; none if it would not read back as the same value.
std::optional<std::string> spelled(double value, const Unit&);

}  // namespace trellis::sim
