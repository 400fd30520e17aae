#include "tools/program/cli_checks.h"

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
      std::int64_t number = 0;
      std::uint64_t large = 0;
      const char* const end = value.data() + value.size();
      const bool fits = type.starts_with("UINT") ? std::from_chars(value.data(), end, large).ec == std::errc{}
                                                 : std::from_chars(value.data(), end, number).ec == std::errc{};
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
      std::int64_t number = 0;
      const char* const end = value.data() + value.size();
      if (whole && std::from_chars(value.data(), end, number).ptr != end) refuse(value, "a whole number");
      if (whole && number != 0 && (value.starts_with("0") || value.starts_with("-0")))
        refuse(value, "a whole number without a 0 before it");
    }
  }
}

}  // namespace trellis::tools
