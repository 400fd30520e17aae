// What the word of an option must be. CLI11's own checks of numbers name a largest double of three hundred digits.
#pragma once

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace trellis::tools {

const CLI::Validator& at_least_zero();
const CLI::Validator& above_zero();
const CLI::Validator& svg_file();  // a name that ends in .svg, or has no ending

// Throws invalid_argument for a value that is empty, which CLI11 takes for 0 or for none at all, and for a whole number
// that is not in plain digits: 010 would be 8.
void expect_plain_values(const CLI::App&);

}  // namespace trellis::tools
