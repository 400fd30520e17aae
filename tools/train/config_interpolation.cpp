#include "tools/train/config_interpolation.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::tools {
namespace {

constexpr int most_depth = 32;
constexpr std::size_t most_text = 1 << 16;  // nested references may double the text each time

// The place after the } that closes the ${ at `at`.
std::size_t end_of(const std::string& text, std::size_t at) {
  int open = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    if (text.compare(i, 2, "${") == 0)
      ++open, ++i;
    else if (text[i] == '}' && --open == 0)
      return i + 1;
  }
  text::refuse("'{}': expected a }} for each ${{", text);
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return "";
  std::string out = text.substr(first, text.find_last_not_of(" \t") + 1 - first);
  if (out.size() >= 2 && (out.front() == '\'' || out.front() == '"') && out.back() == out.front())
    out = out.substr(1, out.size() - 2);
  return out;
}

class Interpolation {
 public:
  explicit Interpolation(const Values& values) : values_(values) {}

  train::KeyValue value(train::KeyValue v, int depth) const {
    if (depth > most_depth) text::refuse("{} refers to itself", v.key);
    if (!v.list && v.words.size() == 1 && is_one(v.words[0])) {
      const std::string inner = inside(v.words[0]);
      if (!is_call(inner)) {
        train::KeyValue found = value(looked_up(inner, v.key, depth), depth + 1);
        found.key = v.key;
        return found;
      }
    }
    for (std::string& w : v.words) w = text(w, v.key, depth);
    return v;
  }

 private:
  static bool is_one(const std::string& w) { return w.starts_with("${") && end_of(w, 0) == w.size(); }
  static std::string inside(const std::string& w) { return w.substr(2, w.size() - 3); }
  static bool is_call(const std::string& inner) { return inner.substr(0, inner.find("${")).find(':') != inner.npos; }

  const train::KeyValue& looked_up(const std::string& inner, const std::string& at, int depth) const {
    std::string path = trimmed(text(inner, at, depth + 1));
    if (path.starts_with('.')) {
      std::string section = at;
      while (path.starts_with('.')) {
        const std::size_t dot = section.rfind('.');
        section = dot == section.npos ? "" : section.substr(0, dot);
        path = path.substr(1);
      }
      if (!section.empty()) path = section + "." + path;
    }
    const auto found = values_.find(path);
    if (found == values_.end()) text::refuse("{}: ${{{}}}: there is no '{}'", at, inner, path);
    return found->second;
  }

  std::string text(const std::string& from, const std::string& at, int depth) const {
    if (depth > most_depth) text::refuse("{} refers to itself", at);
    std::string out;
    for (std::size_t i = 0; i < from.size();) {
      if (from.compare(i, 3, "\\${") == 0) {
        out += "${", i += 3;
      } else if (from.compare(i, 2, "${") == 0) {
        const std::size_t end = end_of(from, i);
        out += one(from.substr(i + 2, end - i - 3), at, depth);
        i = end;
      } else {
        out += from[i++];
      }
      if (out.size() > most_text) text::refuse("{}: expected at most {} letters", at, most_text);
    }
    return out;
  }

  std::string one(const std::string& inner, const std::string& at, int depth) const {
    if (is_call(inner)) return call(inner, at, depth);
    const train::KeyValue v = value(looked_up(inner, at, depth), depth + 1);
    if (v.null) return "null";
    if (v.list || v.words.size() != 1) text::refuse("{}: ${{{}}}: expected one value", at, inner);
    return v.words[0];
  }

  std::string call(const std::string& inner, const std::string& at, int depth) const {
    const std::size_t colon = inner.find(':');
    const std::string name = inner.substr(0, colon);
    const std::vector<std::string> arguments = arguments_of(inner.substr(colon + 1), at, depth);
    if (name == "multiply") return product(arguments, at);
    if (name == "oc.env" && (arguments.size() == 1 || arguments.size() == 2)) {
      if (const char* const said = std::getenv(arguments[0].c_str())) return said;
      if (arguments.size() == 2) return arguments[1];
      text::refuse("{}: the environment has no {}", at, arguments[0]);
    }
    text::refuse("{}: ${{{}}}: expected multiply with numbers, or oc.env with a name", at, inner);
  }

  std::vector<std::string> arguments_of(const std::string& all, const std::string& at, int depth) const {
    std::vector<std::string> out;
    std::string now;
    char quote = 0;
    for (std::size_t i = 0; i < all.size();) {
      if (quote == 0 && all.compare(i, 2, "${") == 0) {
        const std::size_t end = end_of(all, i);
        now += all.substr(i, end - i), i = end;
        continue;
      }
      const char letter = all[i++];
      if (letter == quote)
        quote = 0;
      else if (quote == 0 && (letter == '\'' || letter == '"'))
        quote = letter;
      if (letter == ',' && quote == 0)
        out.push_back(std::exchange(now, ""));
      else
        now += letter;
    }
    out.push_back(now);
    for (std::string& each : out) each = trimmed(text(each, at, depth + 1));
    return out;
  }

  static std::string product(const std::vector<std::string>& factors, const std::string& at) {
    double all = 1;
    for (const std::string& f : factors) {
      const auto n = text::number<double>(f);
      if (!n) text::refuse("{}: multiply: '{}' is no number", at, f);
      all *= *n;
    }
    return fmt::format("{}", all);
  }

  const Values& values_;
};

}  // namespace

train::KeyValue interpolated(const train::KeyValue& value, const Values& values) {
  return Interpolation(values).value(value, 0);
}

}  // namespace trellis::tools
