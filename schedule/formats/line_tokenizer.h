// A tokenizer for one line of a schedule's text. Errors contain the position.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace trellis::schedule {

inline constexpr std::string_view text_headline = "trellis schedule 1";

// Escapes characters that would end or garble a line; unescaped() is the inverse.
std::string escaped(std::string_view);

class LineTokenizer {
 public:
  LineTokenizer(std::string_view text, std::size_t number) : rest_(text), number_(number) { trim(); }

  bool done() const { return rest_.empty(); }
  bool take(std::string_view word);    // removes the word if it is next, as a whole word
  void expect(std::string_view word);  // same, or fails
  std::string_view word();             // the lower-case letters that are next
  std::string unescaped();             // the rest of the line
  void end() const;                    // fails if anything remains

  template <class Number = std::int32_t>
  Number number(std::string_view what, std::int64_t least = 0, std::int64_t most = std::numeric_limits<Number>::max()) {
    return static_cast<Number>(integer(what, least, most));
  }

  // Throws invalid_argument with the line number, the next text and what was expected.
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  std::int64_t integer(std::string_view what, std::int64_t least, std::int64_t most);
  void skip();  // blanks
  void trim();  // blanks at both ends

  std::string_view rest_;
  std::size_t number_;
};

}  // namespace trellis::schedule
