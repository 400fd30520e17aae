#include "ccl/plan/selection_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "text/number_parsing.h"
#include "text/read_file.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::ccl {
namespace {

// Ends every table, so that a truncated table is not taken for a complete one.
constexpr std::string_view last_line = "end";

template <class Number>
Number count_of(std::string_view word, std::string_view what) {
  if (const auto value = text::number<Number>(word, 0)) return *value;
  text::refuse("'{}' is no {}: expected a whole number", word, what);
}

// A word that begins with '#' begins a comment. Within a word, '#' means nothing: the word may be a file's name.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words = text::words(line);
  words.erase(std::ranges::find_if(words, [](std::string_view w) { return w.starts_with('#'); }), words.end());
  return words;
}

// Sorts "*" (any machine) first: no machine's name starts with a character below '*'.
auto order(const SelectionRule& r) {
  return std::tuple(std::string_view(r.machine), r.cores, r.collective, r.ranks, r.type, r.from_bytes);
}

// The words are parts of one line.
SelectionRule rule_in(const std::vector<std::string_view>& words) {
  const auto expected = [] { return std::invalid_argument("expected: collective ranks from_bytes algorithm [type]"); };
  if (words.size() < 4) throw expected();
  const char* line_end = words.back().data() + words.back().size();
  const std::string_view config = schedule::config_at_start_of({words[3].data(), line_end});
  const auto type =
      std::ranges::find_if(words, [&](std::string_view w) { return w.data() >= config.data() + config.size(); });
  if (words.end() - type > 1) throw expected();
  SelectionRule rule{schedule::collective_named(words[0]), count_of<schedule::Rank>(words[1], "number of ranks"),
                     count_of<std::uint64_t>(words[2], "number of bytes"), schedule::algorithm_config_named(config)};
  if (rule.ranks < 1) text::refuse("'{}' is no number of ranks: expected at least 1", words[1]);
  if (type != words.end()) rule.type = kernels::dtype_named(*type);
  return rule;
}

std::string machine_in(const std::vector<std::string_view>& words) {
  if (words.size() != 2) throw std::invalid_argument("expected: machine NAME");
  expect_machine(words[1]);
  return std::string(words[1]);
}

int cores_in(const std::vector<std::string_view>& words) {
  if (words.size() != 2) throw std::invalid_argument("expected: cores NUMBER");
  return count_of<int>(words[1], "number of cores");
}

}  // namespace

void expect_machine(std::string_view name) {
  const auto fits = [](char c) { return text::in_name(c) || c == ':' || c == '+'; };
  if (name != any_machine && (name.empty() || !std::ranges::all_of(name, fits)))
    text::refuse("'{}' is no machine's name: expected letters, digits and any of .-_:+, or * for all", name);
}

std::string text_of(const SelectionRule& r) {
  const std::string text =
      fmt::format("{} {} {} {}", schedule::name(r.collective), r.ranks, r.from_bytes, text_of(r.config));
  return r.type ? fmt::format("{} {}", text, kernels::name(*r.type)) : text;
}

void SelectionTable::add(SelectionRule rule) {
  rules_.insert(std::ranges::upper_bound(rules_, order(rule), {}, order), std::move(rule));
}

SelectionTable SelectionTable::read(std::string_view text) {
  SelectionTable all;
  std::string machine = any_machine;
  int cores = 0;
  bool whole = false;
  std::size_t number = 1;
  for (; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    const bool blank = text::trimmed(text.substr(0, end)).empty();
    text.remove_prefix(std::min(end + 1, text.size()));
    whole = whole && blank;  // only blank lines may follow `end`: a comment may be the heading of a truncated table
    if (words.empty()) continue;
    whole = words.size() == 1 && words[0] == last_line;
    if (whole) {
      machine = any_machine, cores = 0;
      continue;
    }
    try {
      if (words[0] == "machine") {
        machine = machine_in(words), cores = 0;
        continue;
      }
      if (words[0] == "cores") {
        cores = cores_in(words);
        continue;
      }
      SelectionRule rule = rule_in(words);
      rule.machine = machine;
      rule.cores = cores;
      all.add(std::move(rule));
    } catch (const std::invalid_argument& e) {
      text::refuse("line {}: {}", number, e.what());
    }
  }
  if (!whole)
    throw std::invalid_argument(
        number == 1 ? fmt::format("it is empty: expected rules, and a last line '{}'", last_line)
                    : fmt::format("it is cut off after line {}: expected a last line '{}'", number - 1, last_line));
  return all;
}

SelectionTable SelectionTable::from_file(const std::string& path) {
  const std::string text = text::read_file(path);
  try {
    SelectionTable all = read(text);
    if (all.rules().empty()) throw std::invalid_argument("no rule is in it: expected lines like 'all_reduce 2 0 ring'");
    return all;
  } catch (const std::invalid_argument& e) {
    text::refuse("{}: no selection table: {}", path, e.what());
  }
}

std::string SelectionTable::text() const {
  std::string text = "# collective ranks from_bytes algorithm[(levels)][@dims][^order][*channels][/segments] [type]\n";
  std::string_view machine;
  int cores = 0;
  for (const SelectionRule& r : rules_) {
    if (r.machine != machine) text += fmt::format("machine {}\n", machine = r.machine), cores = 0;
    if (r.cores != cores) text += fmt::format("cores {}\n", cores = r.cores);
    text += text_of(r) + "\n";
  }
  return text + fmt::format("{}\n", last_line);
}

schedule::Rank SelectionTable::nearest(schedule::Collective collective, schedule::Rank ranks,
                                       std::string_view machine) const {
  schedule::Rank nearest = 0;
  for (const SelectionRule& r : rules_)
    if (r.machine == machine && r.collective == collective &&
        (nearest == 0 || std::abs(r.ranks - ranks) < std::abs(nearest - ranks)))
      nearest = r.ranks;
  return nearest;
}

// The distinct SelectionRule::cores of the rules for exactly `ranks` ranks, best for ranks with `cores` cores first:
// see candidates().
std::vector<int> SelectionTable::measured_with(schedule::Collective collective, schedule::Rank ranks,
                                               std::string_view machine, int cores) const {
  std::vector<int> all;
  for (const SelectionRule& r : rules_)
    if (std::tuple(std::string_view(r.machine), r.collective, r.ranks) == std::tuple(machine, collective, ranks) &&
        std::ranges::find(all, r.cores) == all.end())
      all.push_back(r.cores);
  std::ranges::sort(all, {}, [&](int measured) {
    const int kind = measured == 0 ? 1 : measured >= cores ? 0 : 2;
    return std::pair(kind, kind == 0 ? measured : -measured);
  });
  return all;
}

int SelectionTable::measured_cores(schedule::Collective collective, schedule::Rank ranks, std::string_view machine,
                                   int cores) const {
  for (const std::string_view whose : {machine, std::string_view(any_machine)})
    if (const schedule::Rank near = nearest(collective, ranks, whose); near != 0)
      return measured_with(collective, near, whose, cores).front();
  return 0;
}

std::vector<SelectionRule> SelectionTable::candidates(schedule::Collective collective, schedule::Rank ranks,
                                                      std::uint64_t bytes, kernels::DType type,
                                                      std::string_view machine, int cores) const {
  std::vector<SelectionRule> all;
  const schedule::Rank near = nearest(collective, ranks, machine);
  for (const int measured : measured_with(collective, near, machine, cores)) {
    std::vector<SelectionRule> typed, any;
    for (const SelectionRule& r : rules_)
      if (std::tuple(std::string_view(r.machine), r.collective, r.ranks, r.cores) ==
              std::tuple(machine, collective, near, measured) &&
          r.from_bytes <= bytes && (!r.type || r.type == type)) {
        std::vector<SelectionRule>& found = r.type ? typed : any;
        found.insert(found.begin(), r);
      }
    all.insert(all.end(), typed.begin(), typed.end());
    all.insert(all.end(), any.begin(), any.end());
  }
  if (machine == any_machine) return all;
  const std::vector<SelectionRule> others = candidates(collective, ranks, bytes, type, any_machine, cores);
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace trellis::ccl
