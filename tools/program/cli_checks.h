// Checks of option values. CLI11's own checks of numbers print the largest double with three hundred digits.
#pragma once

#include "tools/program/cli_app.h"

namespace trellis::tools {

const CLI::Validator& at_least_zero();
const CLI::Validator& above_zero();
const CLI::Validator& svg_file();  // a name that ends in .svg, or has no ending

// Throws invalid_argument for numbers that CLI11 would misread: an empty one as 0, a whole one of more than 64 bits as
// the largest one, and one that is not in plain decimal digits: 010 as 8.
void expect_plain_numbers(const cli11::App&);

// Throws invalid_argument for an empty value of an option that takes one: commands read "" as an option that is not
// given, and a path that a script left empty would silently write nothing. Arguments without a name may be empty, as
// words of a program that is launched are.
void expect_values(const cli11::App&);

}  // namespace trellis::tools
