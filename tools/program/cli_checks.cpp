#include "tools/program/cli_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "text/number.h"

namespace trellis::tools {
namespace {

CLI::Validator number_check(bool (*holds)(double), const char* expected, const char* name) {
  const auto check = [=](std::string& word) {
    const auto value = text::finite_number(word);
    return value && holds(*value) ? "" : fmt::format("'{}': expected a number{}", word, expected);
  };
  return CLI::Validator({check, name});
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

void expect_whole_values_in_range(const cli11::App& app) {
  for (const cli11::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.find("INT") == std::string::npos) continue;
    for (const std::string& value : option->results()) {
      std::string_view rest = value;
      const bool fits = type.starts_with("UINT") ? text::take_number<std::uint64_t>(rest).has_value()
                                                 : text::take_number<std::int64_t>(rest).has_value();
      if (!fits)
        throw std::invalid_argument(fmt::format("{} {}: expected a whole number, and not too large a one",
                                                option->get_name(false, true), value));
    }
  }
}

void expect_plain_values(const CLI::App& app) {
  for (const cli11::Option* option : app.whole().get_options()) {
    const bool whole = option->get_type_name() == "INT";
    if (option->count() == 0 || option->get_items_expected_min() == 0) continue;  // it may be without a value
    const auto refuse = [&](const std::string& value, const char* expected) {
      throw std::invalid_argument(fmt::format("{} {}: expected {}", option->get_name(false, true), value, expected));
    };
    for (const std::string& value : option->results()) {
      if (value.empty()) refuse("''", "a value");
      const auto number = whole ? text::number<std::int64_t>(value) : 0;
      if (!number) refuse(value, "a whole number");
      if (number != 0 && (value.starts_with("0") || value.starts_with("-0")))
        refuse(value, "a whole number without a 0 before it");
    }
  }
}

}  // namespace trellis::tools
