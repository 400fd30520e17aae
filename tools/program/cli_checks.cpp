#include "tools/program/cli_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::tools {
namespace {

CLI::Validator number_check(bool (*holds)(double), const char* expected, const char* name) {
  const auto check = [=](std::string& word) {
    const auto value = text::finite_number(word);
    return value && holds(*value) ? "" : fmt::format("'{}': expected a number{}", word, expected);
  };
  return CLI::Validator({check, name});
}

[[noreturn]] void refuse(const cli11::Option& option, const std::string& value, const char* expected) {
  text::refuse("{} {}: expected {}", option.get_name(false, true), value.empty() ? "''" : value, expected);
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
  static const CLI::Validator check(cli11::Validator(
      [](std::string& path) {
        const std::string ending = std::filesystem::path(path).extension();
        return ending.empty() || ending == ".svg" ? "" : fmt::format("'{}': expected a name that ends in .svg", path);
      },
      "FILE.svg"));
  return check;
}

void expect_plain_numbers(const cli11::App& app) {
  for (const cli11::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const bool whole = type.find("INT") != std::string::npos;
    if (!whole && type.find("FLOAT") == std::string::npos) continue;
    for (const std::string& value : option->results()) {
      if (value.empty()) refuse(*option, value, "a number");
      if (!whole) continue;
      const bool fits = type.starts_with("UINT") ? text::number<std::uint64_t>(value).has_value()
                                                 : text::number<std::int64_t>(value).has_value();
      if (!fits) refuse(*option, value, "a whole number, and not too large a one");
      const std::size_t digits = value.find_first_not_of('-');
      if (value[digits] == '0' && value.size() > digits + 1)
        refuse(*option, value, "a whole number without a 0 before it");
    }
  }
}

void expect_values(const cli11::App& app) {
  for (const cli11::Option* option : app.get_options())
    if (!option->get_positional() && option->count() != 0 &&
        option->get_items_expected_min() != 0 &&  // else it may be without a value
        std::ranges::find(option->results(), "") != option->results().end())
      refuse(*option, "", "a value");
}

}  // namespace trellis::tools
