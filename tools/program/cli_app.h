// What commands use of CLI11, under its names. Including CLI11 itself costs four seconds of compile time in each
// source.
#pragma once

#include <cstddef>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace trellis::tools {

namespace cli11 = ::CLI;

namespace CLI {

// A check of an option's value, and the expected value as --help shows it.
class Validator {
 public:
  explicit Validator(cli11::Validator);
  const cli11::Validator& whole() const { return *whole_; }

 private:
  std::shared_ptr<const cli11::Validator> whole_;
};

Validator Range(int least, int most);
Validator IsMember(std::initializer_list<std::string> words);

class Option {
 public:
  explicit Option(cli11::Option& whole) : whole_(&whole) {}

  Option* required();
  Option* check(const Validator&);
  Option* capture_default_str();
  Option* delimiter(char);
  Option* expected(int words);
  Option* expected(int least, int most);
  Option* allow_extra_args(bool allowed = true);
  Option* group(const std::string& name);
  Option* excludes(Option*);
  Option* needs(Option*);

 private:
  cli11::Option* whole_;
};

class App {
 public:
  App();  // owns its parser; for tests
  explicit App(cli11::App&);

  // A new type of value must be added to the list in cli_app.cpp.
  template <class Value>
  Option* add_option(const std::string& names, Value& value, const std::string& text);
  Option* add_flag(const std::string& names, bool& value, const std::string& text);
  void description(const std::string&);
  void pass_words_on();  // parsing stops at the first word that is no option here: for commands that read typed_words

  void parse(std::vector<std::string> words);
  std::size_t count(const std::string& name) const;
  const cli11::App& whole() const { return *whole_; }

 private:
  std::shared_ptr<cli11::App> whole_;
  std::deque<Option> options_;
};

}  // namespace CLI
}  // namespace trellis::tools
