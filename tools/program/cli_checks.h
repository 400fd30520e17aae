// Checks of option values. CLI11's own checks of numbers print the largest double with three hundred digits.
#pragma once

#include "tools/program/cli_app.h"

namespace trellis::tools {

const CLI::Validator& at_least_zero();
const CLI::Validator& above_zero();
const CLI::Validator& svg_file();  // a name that ends in .svg, or has no ending

// Throws invalid_argument for a number that is empty, which CLI11 takes for 0; and for a whole one of more than 64
// bits, which it would clamp to the largest one, or not in plain decimal digits: it reads 010 as 8.
void expect_plain_numbers(const cli11::App&);

// Throws invalid_argument for an empty value of an option that takes one.
void expect_values(const CLI::App&);

}  // namespace trellis::tools
