#include "tools/program/cli_app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace trellis::tools::CLI {

Validator::Validator(cli11::Validator whole) : whole_(std::make_shared<const cli11::Validator>(std::move(whole))) {}

Validator Range(int least, int most) { return Validator(cli11::Range(least, most)); }

Validator IsMember(std::initializer_list<std::string> words) { return Validator(cli11::IsMember(words)); }

Option* Option::required() {
  whole_->required();
  return this;
}

Option* Option::check(const Validator& validator) {
  whole_->check(validator.whole());
  return this;
}

Option* Option::capture_default_str() {
  whole_->capture_default_str();
  return this;
}

Option* Option::delimiter(char between) {
  whole_->delimiter(between);
  return this;
}

Option* Option::expected(int words) {
  whole_->expected(words);
  return this;
}

Option* Option::expected(int least, int most) {
  whole_->expected(least, most);
  return this;
}

Option* Option::allow_extra_args(bool allowed) {
  whole_->allow_extra_args(allowed);
  return this;
}

Option* Option::group(const std::string& name) {
  whole_->group(name);
  return this;
}

Option* Option::excludes(Option* other) {
  whole_->excludes(other->whole_);
  return this;
}

Option* Option::needs(Option* other) {
  whole_->needs(other->whole_);
  return this;
}

App::App() : whole_(std::make_shared<cli11::App>()) {}

App::App(cli11::App& whole) : whole_(&whole, [](cli11::App*) {}) {}

template <class Value>
Option* App::add_option(const std::string& names, Value& value, const std::string& text) {
  cli11::Option* whole = whole_->add_option(names, value, text);
  // In `train --set a=b FILE`, FILE is an argument of the command, and no further value of --set.
  if (!whole->get_positional()) whole->allow_extra_args(false);
  return &options_.emplace_back(*whole);
}

template Option* App::add_option(const std::string&, int&, const std::string&);
template Option* App::add_option(const std::string&, unsigned&, const std::string&);
template Option* App::add_option(const std::string&, std::int64_t&, const std::string&);
template Option* App::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option* App::add_option(const std::string&, double&, const std::string&);
template Option* App::add_option(const std::string&, std::string&, const std::string&);
template Option* App::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option* App::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<std::string>&, const std::string&);

Option* App::add_flag(const std::string& names, bool& value, const std::string& text) {
  return &options_.emplace_back(*whole_->add_flag(names, value, text));
}

void App::pass_words_on() { whole_->prefix_command(); }

void App::description(const std::string& text) { whole_->description(text); }

void App::parse(std::vector<std::string> words) {
  std::ranges::reverse(words);  // CLI11 takes them from the back
  whole_->parse(std::move(words));
}

std::size_t App::count(const std::string& name) const { return whole_->count(name); }

}  // namespace trellis::tools::CLI
