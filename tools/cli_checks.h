// What the number of an option must be. CLI11's own checks of this name a largest double of three hundred digits.
#pragma once

namespace CLI {
class Validator;
}

namespace trellis::tools {

const CLI::Validator& at_least_zero();
const CLI::Validator& above_zero();

}  // namespace trellis::tools
