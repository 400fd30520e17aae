// A tokenizer for a line of assembly: takes words one by one, with errors that name the word.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string_view>

namespace trellis::sim::core {

class AssemblyTokenizer {
 public:
  AssemblyTokenizer(std::string_view line, std::size_t number) : rest_(line), number_(number) { skip(); }

  bool empty() const { return rest_.empty(); }
  std::size_t number() const { return number_; }
  bool next_is(std::string_view text) const { return rest_.starts_with(text); }
  bool take(std::string_view text);    // whether it comes next; consumes it then
  void expect(std::string_view text);  // throws if it does not come next
  std::string_view name();             // letters, digits, '_', '.', '-'
  std::int64_t integer();              // within 2^53
  double real();                       // finite or inf
  bool next_is_name() const;
  template <std::integral T>
  T integer(std::int64_t low, std::int64_t high) {
    const std::int64_t value = integer();
    if (value < low || value > high) fail_range(value, low, high);
    return static_cast<T>(value);
  }

  [[noreturn]] void fail(std::string_view expected) const;  // "line 3: expected a name at 'xyz'"

 private:
  void skip();  // blanks
  [[noreturn]] void fail_range(std::int64_t value, std::int64_t low, std::int64_t high) const;

  std::string_view rest_;
  std::size_t number_;
};

}  // namespace trellis::sim::core
