#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "schedule/algorithm.h"
#include "tools/command.h"
#include "tools/nearest.h"
#include "tools/output.h"
#include "tools/table.h"

namespace trellis::tools {
namespace {

using schedule::Collective;

constexpr std::size_t line_width = 100;

struct Options {
  std::string collective;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.add_option("-c,--collective", o.collective, "Only the algorithms that serve this collective");
  app.add_flag("--json", o.json, "Print JSON");
}

Collective collective_for(const std::string& word) {
  std::vector<std::string> names;
  for (Collective c : schedule::collectives()) names.emplace_back(schedule::name(c));
  const std::string meant = nearest(word, names);
  if (std::ranges::find(names, word) == names.end() && !meant.empty())
    throw std::invalid_argument(fmt::format("no collective is called '{}'; did you mean '{}'?", word, meant));
  return schedule::collective_named(word);
}

Table table_of(const std::optional<Collective>& only) {
  Table table("algorithms", {{.name = "algorithm", .align = Align::left},
                             {.name = "collective", .align = Align::left},
                             {.name = "constraint", .align = Align::left},
                             {.name = "summary", .align = Align::left}});
  for (const auto& [name, algorithm] : schedule::algorithms())
    for (Collective c : algorithm.serves)
      if (!only || c == *only)
        table.add({name, std::string(schedule::name(c)), algorithm.constraint, algorithm.summary});
  return table;
}

// Each algorithm in a few lines.
std::string overview() {
  std::size_t widest = 0;
  for (const auto& [name, algorithm] : schedule::algorithms()) widest = std::max(widest, name.size());
  std::string text;
  for (const auto& [name, algorithm] : schedule::algorithms()) {
    const auto line = [&](std::string_view title, std::string_view words) {
      text += fmt::format("{:{}}  {}\n", title, widest, words);
    };
    line(name, algorithm.summary);
    line("", fmt::format("for {}", algorithm.constraint));
    std::string served;
    for (Collective c : algorithm.serves) {
      if (served.size() + schedule::name(c).size() > line_width - widest) line("", served), served.clear();
      served += fmt::format("{}{}", served.empty() ? "" : " ", schedule::name(c));
    }
    line("", served);
  }
  return text;
}

int run(const Options& o) {
  const auto only = o.collective.empty() ? std::nullopt : std::optional(collective_for(o.collective));
  if (o.json)
    write_output("", table_of(only).json());
  else
    write_output("", only ? table_of(only).text() : overview());
  return 0;
}

const Registered group({.path = "schedule",
                        .summary = "Schedules: list, show, prove, convert, draw",
                        .examples = "trellis schedule list\n"
                                    "trellis schedule show all_reduce --algorithm ring --dims 4\n"
                                    "trellis schedule draw all_reduce --algorithm ring --dims 8 -o ring.svg"});
const Registered list(command("schedule list", "Lists the algorithms and the collectives they serve",
                              "trellis schedule list\n"
                              "trellis schedule list --collective all_reduce\n"
                              "trellis schedule list --json",
                              add, run));

}  // namespace
}  // namespace trellis::tools
