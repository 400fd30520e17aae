#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "schedule/algorithms/algorithm.h"
#include "text/nearest.h"
#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/table.h"

namespace trellis::tools {
namespace {

using schedule::Algorithm;
using schedule::Collective;

struct Options {
  std::string algorithm;
  std::string collective;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.add_option("algorithm", o.algorithm, "Only this algorithm, in words");
  app.add_option("-c,--collective", o.collective, "Only the algorithms that serve this collective");
  app.add_flag("--json", o.json, "Print JSON");
}

Collective collective_for(const std::string& word) {
  std::vector<std::string> names;
  for (Collective c : schedule::collectives()) names.emplace_back(schedule::name(c));
  const std::string meant = text::did_you_mean(word, names);
  if (std::ranges::find(names, word) == names.end() && !meant.empty())
    text::refuse("no collective is called '{}'{}", word, meant);
  return schedule::collective_named(word);
}

bool serves(const Algorithm& algorithm, Collective c) { return std::ranges::count(algorithm.serves, c) > 0; }

// One row for each algorithm and collective.
Table rows(const Options& o, const std::optional<Collective>& only) {
  Table table("algorithms", {left("algorithm"), left("collective"), left("constraint"), left("summary")});
  for (const auto& [name, algorithm] : schedule::algorithms())
    for (Collective c : algorithm.serves)
      if ((!only || c == *only) && (o.algorithm.empty() || name == o.algorithm))
        table.add({name, std::string(schedule::name(c)), algorithm.constraint, algorithm.summary});
  return table;
}

// The matrix's column headings, in the order of collectives(): short, as a cell is one mark.
constexpr std::array short_names{"AR",  "RS",   "AG",  "BC",  "RD", "GA", "SC",
                                 "A2A", "A2Av", "AGv", "RSv", "PM", "SR", "BA"};

// Rows are algorithms, columns are collectives.
std::string matrix() {
  std::vector<Column> columns{left("algorithm")};
  for (const char* head : short_names) columns.push_back(left(head));
  columns.push_back(left("constraint"));
  Table table("algorithms", columns);
  for (const auto& [name, algorithm] : schedule::algorithms()) {
    std::vector<Cell> row{name};
    for (Collective c : schedule::collectives()) row.emplace_back(std::string(serves(algorithm, c) ? "x" : "."));
    row.emplace_back(algorithm.constraint);
    table.add(row);
  }
  std::string legend;
  for (std::size_t i = 0; i < short_names.size(); ++i)
    legend += fmt::format("{}{} {}",
                          i == 0       ? ""
                          : i % 5 == 0 ? ",\n"
                                       : ", ",
                          short_names[i], schedule::name(schedule::collectives()[i]));
  return fmt::format("{}\n{}\n", table.text(), legend);
}

std::string in_words(const Algorithm& algorithm) {
  std::string text = fmt::format("{}: {}\nfor {}\n", algorithm.name, algorithm.summary, algorithm.constraint);
  for (Collective c : algorithm.serves) text += fmt::format("  {}\n", schedule::name(c));
  return text;
}

int run(const Options& o) {
  const auto only = o.collective.empty() ? std::nullopt : std::optional(collective_for(o.collective));
  if (!o.algorithm.empty()) schedule::algorithm_named(o.algorithm);
  if (o.json)
    write_output("", rows(o, only).json());
  else if (only)
    write_output("", rows(o, only).text());
  else
    write_output("", o.algorithm.empty() ? matrix() : in_words(schedule::algorithm_named(o.algorithm)));
  return 0;
}

const RegisteredCommand group({.path = "schedule",
                               .summary = "Schedules: list, show, prove, convert, draw",
                               .examples = "trellis schedule list\n"
                                           "trellis schedule show all_reduce --algorithm ring --dims 4\n"
                                           "trellis schedule draw all_reduce --algorithm ring --dims 8 -o ring.svg"});
const RegisteredCommand list("schedule list", "Lists the algorithms and the collectives they serve",
                             "trellis schedule list\n"
                             "trellis schedule list swing\n"
                             "trellis schedule list --collective all_reduce\n"
                             "trellis schedule list --json",
                             add, run);

}  // namespace
}  // namespace trellis::tools
