// One line of a schedule's text, taken apart from the left; what does not fit is reported with its place.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace trellis::schedule {

inline constexpr std::string_view text_headline = "trellis schedule 1";

// Without what would end or garble a line; unescaped() is the way back.
std::string escaped(std::string_view);

class Line {
 public:
  Line(std::string_view text, std::size_t number) : rest_(text), number_(number) { trim(); }

  bool done() const { return rest_.empty(); }
  bool take(std::string_view word);    // removes it if it comes next, as a whole word
  void expect(std::string_view word);  // the same, or fails
  std::string_view word();             // the lower-case letters that come next
  std::string unescaped();             // all that remains
  void end() const;                    // fails if anything remains

  template <class Number = std::int32_t>
  Number number(std::string_view what, std::int64_t least = 0, std::int64_t most = std::numeric_limits<Number>::max()) {
    return static_cast<Number>(integer(what, least, most));
  }

  // Throws invalid_argument: the line's number, what comes next and what was expected.
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  std::int64_t integer(std::string_view what, std::int64_t least, std::int64_t most);
  void skip();  // blanks
  void trim();  // blanks at both ends

  std::string_view rest_;
  std::size_t number_;
};

}  // namespace trellis::schedule
