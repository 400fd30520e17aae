// What the word of an option must be. CLI11's own checks of numbers name a largest double of three hundred digits.
#pragma once

namespace CLI {
class Validator;
}

namespace trellis::tools {

const CLI::Validator& at_least_zero();
const CLI::Validator& above_zero();
const CLI::Validator& svg_file();  // a name that ends in .svg, or has no ending

}  // namespace trellis::tools
