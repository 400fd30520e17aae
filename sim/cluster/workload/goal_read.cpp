#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "sim/cluster/workload/loggopsim_goal.h"
#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

constexpr std::int64_t most_ranks = 1 << 21, most_amount = std::int64_t{1} << 50, most_places = 1024;
constexpr std::size_t most_operations = std::size_t{1} << 24;

class Reader {
 public:
  Reader(std::string_view name, std::string_view text) : text_(text) { out_.name = name; }

  GoalProgram read() {
    expect("num_ranks");
    out_.ranks.resize(static_cast<std::size_t>(number("num_ranks", 1, most_ranks)));
    std::vector<bool> seen(out_.ranks.size(), false);
    for (next(); !word_.empty(); next()) {
      if (word_ != "rank") refuse("'{}': expected rank N {{", word_);
      const auto rank = static_cast<std::size_t>(number("rank", 0, std::ssize(out_.ranks) - 1));
      if (seen[rank]) refuse("rank {} was there before", rank);
      seen[rank] = true;
      expect("{");
      read_rank(out_.ranks[rank]);
    }
    return std::move(out_);
  }

 private:
  template <class... T>
  [[noreturn]] void refuse(fmt::format_string<T...> format, T&&... values) const {
    text::refuse("{}: line {}: {}", out_.name, line_, fmt::format(format, std::forward<T>(values)...));
  }

  // Skips blanks and comments; the word is empty at the end.
  void next() {
    for (; at_ < text_.size(); ++at_) {
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
        --at_;
      } else if (rest.starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == text_.npos) refuse("a comment without an end");
        line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                     text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        at_ = end + 1;
      } else if (text_[at_] == '\n') {
        ++line_;
      } else if (!is_blank(text_[at_])) {
        break;
      }
    }
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end == at_ && end < text_.size()) ++end;  // one of { } :
    word_ = text_.substr(at_, end - at_);
    at_ = end;
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == ','; }
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

  void expect(std::string_view wanted) {
    next();
    if (word_ != wanted) refuse("'{}': expected {}", word_, wanted);
  }

  std::int64_t number(std::string_view what, std::int64_t low, std::int64_t high, std::string_view unit = "") {
    next();
    std::string_view digits = word_;
    if (!unit.empty() && digits.ends_with(unit)) digits.remove_suffix(unit.size());
    const auto value = text::number<std::int64_t>(digits, low, high);
    if (!value) refuse("'{}' as {}: expected {} to {}", word_, what, low, high);
    return *value;
  }

  void read_rank(std::vector<GoalOperation>& all) {
    std::unordered_map<std::string_view, std::uint32_t> labels;
    const auto labelled = [&](std::string_view label) {
      const auto found = labels.find(label);
      if (found == labels.end()) refuse("no operation is labelled '{}'", label);
      return found->second;
    };
    next();
    while (word_ != "}") {
      if (word_.empty()) refuse("the end of the file: expected an operation or }}");
      if (is_operation(word_)) {
        read_operation(all);
        continue;
      }
      const std::string_view label = word_;
      next();
      if (word_ == ":") {
        next();
        if (!is_operation(word_)) refuse("'{}': expected calc, send or recv", word_);
        if (!labels.emplace(label, static_cast<std::uint32_t>(all.size())).second)
          refuse("an operation labelled '{}' was there before", label);
        read_operation(all);
        continue;
      }
      if (word_ != "requires" && word_ != "irequires") refuse("'{}': expected a colon, requires or irequires", word_);
      const bool ended = word_ == "requires";
      const std::uint32_t own = labelled(label);
      next();
      const std::uint32_t other = labelled(word_);
      if (own == other) refuse("'{}' waits for itself", label);
      (ended ? all[own].after : all[own].with).push_back(other);
      next();
    }
  }

  static bool is_operation(std::string_view word) { return word == "calc" || word == "send" || word == "recv"; }

  // Reads an operation. `word_` is then the word after it.
  void read_operation(std::vector<GoalOperation>& all) {
    using Kind = GoalOperation::Kind;
    if (++operations_ > most_operations) refuse("more than {} operations", most_operations);
    GoalOperation one{.kind = word_ == "calc"   ? Kind::compute
                              : word_ == "send" ? Kind::send
                                                : Kind::receive,
                      .line = line_};
    one.amount = number(word_, 0, most_amount, one.kind == Kind::compute ? "" : "b");
    if (one.kind != Kind::compute) {
      expect(one.kind == Kind::send ? "to" : "from");
      one.peer = number("a rank", one.kind == Kind::send ? 0 : -1, std::ssize(out_.ranks) - 1);
    }
    for (next(); word_ == "tag" || word_ == "cpu" || word_ == "nic"; next()) {
      if (word_ == "tag")
        one.tag = number("tag", -1, most_amount);
      else if (word_ == "cpu")
        one.cpu = static_cast<std::uint32_t>(number("cpu", 0, most_places - 1));
      else
        one.nic = static_cast<std::uint32_t>(number("nic", 0, most_places - 1));
    }
    all.push_back(std::move(one));
  }

  std::string_view text_, word_;
  std::size_t at_ = 0, line_ = 1, operations_ = 0;
  GoalProgram out_;
};

}  // namespace

bool is_goal(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//"))
      at = std::min(text.find('\n', at), text.size());
    else if (rest.starts_with("/*"))
      at = std::min(text.find("*/", at), text.size() - 2) + 2;
    else if (std::isspace(static_cast<unsigned char>(text[at])) != 0)
      ++at;
    else
      return rest.starts_with("num_ranks");
  }
  return false;
}

GoalProgram read_goal(std::string_view name, std::string_view text) { return Reader(name, text).read(); }

std::optional<LogGops> loggops_named(std::string_view typed) {
  if (typed != "loggp" && !typed.starts_with("loggp:")) return {};
  LogGops p;
  std::string_view rest = typed.substr(std::min<std::size_t>(typed.size(), 6));
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    double* const field = part.starts_with("L=")   ? &p.L
                          : part.starts_with("o=") ? &p.o
                          : part.starts_with("g=") ? &p.g
                          : part.starts_with("G=") ? &p.G
                          : part.starts_with("O=") ? &p.O
                          : part.starts_with("S=") ? &p.S
                                                   : nullptr;
    const auto value = field == nullptr ? std::nullopt : text::number<double>(part.substr(2), 0, 1e12);
    if (!value)
      text::refuse("{}: '{}': expected one of L, o, g, G, O, S and a number of nanoseconds (S: bytes), as in L=2500",
                   typed, part);
    *field = *value;
  }
  return p;
}

}  // namespace trellis::sim
