#include "tools/cli_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <string>

namespace trellis::tools {
namespace {

bool is_number(const std::string& word, double& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size() && std::isfinite(value);
}

}  // namespace

const CLI::Validator& at_least_zero() {
  static const CLI::Validator check(
      [](std::string& word) {
        double value = 0;
        return is_number(word, value) && value >= 0 ? "" : fmt::format("'{}': expected a number, at least 0", word);
      },
      "NONNEGATIVE");
  return check;
}

const CLI::Validator& above_zero() {
  static const CLI::Validator check(
      [](std::string& word) {
        double value = 0;
        return is_number(word, value) && value > 0 ? "" : fmt::format("'{}': expected a number above 0", word);
      },
      "POSITIVE");
  return check;
}

}  // namespace trellis::tools
