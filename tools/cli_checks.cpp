#include "tools/cli_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <stdexcept>
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

void expect_plain_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const bool whole = option->get_type_name() == "INT";
    if (option->count() == 0 || option->get_items_expected_min() == 0) continue;  // it may have no value
    const auto refuse = [&](const std::string& value, const char* expected) {
      throw std::invalid_argument(fmt::format("{} {}: expected {}", option->get_name(false, true), value, expected));
    };
    for (const std::string& value : option->results()) {
      if (value.empty()) refuse("''", "a value");
      std::int64_t number = 0;
      const char* const end = value.data() + value.size();
      if (whole && std::from_chars(value.data(), end, number).ptr != end) refuse(value, "a whole number");
      if (whole && number != 0 && (value.starts_with("0") || value.starts_with("-0")))
        refuse(value, "a whole number without a 0 before it");
    }
  }
}

}  // namespace trellis::tools
