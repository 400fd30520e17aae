// Checks of option values. CLI11's own checks of numbers print the largest double with three hundred digits.
#pragma once

#include "tools/program/cli_app.h"

namespace trellis::tools {

const CLI::Validator& at_least_zero();
const CLI::Validator& above_zero();
const CLI::Validator& svg_file();  // a name that ends in .svg, or has no ending

// Throws invalid_argument for a whole number of more than 64 bits, which CLI11 would clamp to the largest one.
void expect_whole_values_in_range(const cli11::App&);

// Throws invalid_argument for an empty value, which CLI11 takes for 0 or for no value, and for a whole number that is
// not in plain decimal digits: CLI11 reads 010 as 8.
void expect_plain_values(const CLI::App&);

}  // namespace trellis::tools
