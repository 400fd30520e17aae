#include "tools/cli_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string>

namespace trellis::tools {
namespace {

CLI::Validator number_check(bool (*holds)(double), const char* expected, const char* name) {
  const auto check = [=](std::string& word) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool number = error == std::errc{} && end == word.data() + word.size() && std::isfinite(value);
    return number && holds(value) ? "" : fmt::format("'{}': expected a number{}", word, expected);
  };
  return {check, name};
}

}  // namespace

const CLI::Validator& at_least_zero() {
  static const CLI::Validator check = number_check([](double v) { return v >= 0; }, ", at least 0", "NONNEGATIVE");
  return check;
}

const CLI::Validator& above_zero() {
  static const CLI::Validator check = number_check([](double v) { return v > 0; }, " above 0", "POSITIVE");
  return check;
}

const CLI::Validator& svg_file() {
  static const CLI::Validator check(
      [](std::string& path) {
        const std::string ending = std::filesystem::path(path).extension();
        return ending.empty() || ending == ".svg" ? "" : fmt::format("'{}': expected a name that ends in .svg", path);
      },
      "FILE.svg");
  return check;
}

}  // namespace trellis::tools
