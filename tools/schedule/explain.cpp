// trellis schedule explain: an algorithm config in words, a line for each of its parts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/algorithm_config.h"
#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/provenance.h"

namespace trellis::tools {
namespace {

using schedule::AlgorithmConfig;

struct Options {
  std::vector<std::string> config;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Says in words what an algorithm config means, as `trellis sim`, selection tables, `trellis bench\n"
      "--show-algorithm` and TRELLIS_ALGORITHM print and take it. Both forms are read:\n"
      "hierarchical dims=4x4 channels=2, and hierarchical@4x4*2.");
  app.add_option("config", o.config, "The config; its words may stand apart")->required();
  app.add_flag("--json", o.json, "Print JSON");
}

using Lines = std::vector<std::pair<std::string, std::string>>;

std::string algorithm_words(const std::string& level) {
  const std::string name = level.substr(0, level.find_first_of("(:"));
  const auto found = schedule::algorithms().find(name);
  return found == schedule::algorithms().end() ? "" : found->second.summary;
}

std::string dims_words(const std::vector<schedule::Rank>& dims) {
  const auto ranks = std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  if (dims.size() == 1) return fmt::format("{} ranks in a row", ranks);
  std::string words = fmt::format("{} ranks: {} neighbours in a row", ranks, dims.front());
  for (std::size_t i = 1; i < dims.size(); ++i) words += fmt::format(", {} of these", dims[i]);
  return words + "; the innermost first";
}

// The form that needs no quotes in a shell.
std::string short_form(const AlgorithmConfig& c) {
  std::string text = c.algorithm;
  if (!c.levels.empty()) text += fmt::format("({})", fmt::join(c.levels, ","));
  if (!c.dims.empty()) text += fmt::format("@{}", fmt::join(c.dims, "x"));
  if (!c.order.empty()) text += fmt::format("^{}", fmt::join(c.order, "."));
  if (!c.numbering.empty()) text += "~" + schedule::numbering_text(c.numbering);
  if (c.channels > 1) text += fmt::format("*{}", c.channels);
  if (c.segments > 1) text += fmt::format("/{}", c.segments);
  return text;
}

Lines lines_of(const AlgorithmConfig& c, const schedule::Algorithm& a) {
  Lines lines = {{"algorithm", fmt::format("{}: {}", a.name, a.summary)}, {"serves", a.constraint}};
  if (!c.dims.empty()) lines.emplace_back("dims", fmt::format("{}: {}", fmt::join(c.dims, "x"), dims_words(c.dims)));
  for (std::size_t i = 0; i < c.levels.size(); ++i)
    lines.emplace_back(fmt::format("level {}", i + 1),
                       fmt::format("{}: {}", c.levels[i], algorithm_words(c.levels[i])));
  const bool lacks_parts = a.name == "split" && c.levels.empty();
  if (lacks_parts)
    lines.emplace_back("levels", "none is named: it needs two parts or more, as in split(ring:2,direct)");
  else if (a.has_levels && c.levels.empty())
    lines.emplace_back("levels", "none is named: each has what is usual there");
  if (!c.order.empty())
    lines.emplace_back("order", fmt::format("{}: the algorithm sees the dimensions in this order, innermost first",
                                            fmt::join(c.order, ", ")));
  if (!c.numbering.empty())
    lines.emplace_back("numbering", fmt::format("{}: the ranks in the order in which the algorithm counts them",
                                                schedule::numbering_text(c.numbering)));
  lines.emplace_back("channels", c.channels == 1
                                     ? "1: the data goes one way through the algorithm"
                                     : fmt::format("{}: the data is cut into {} shares that travel at the same time",
                                                   c.channels, c.channels));
  lines.emplace_back("segments",
                     c.segments == 1
                         ? "1: a share is sent whole"
                         : fmt::format("{}: a share is sent in {} pieces, one after another, so that the next step "
                                       "begins before the share is complete",
                                       c.segments, c.segments));
  std::vector<std::string_view> served;
  for (const schedule::Collective collective : a.serves) served.push_back(schedule::name(collective));
  lines.emplace_back("collectives", fmt::format("{}", fmt::join(served, ", ")));
  lines.emplace_back("short form", short_form(c));
  const std::string dims = fmt::format("{}{}", c.dims.empty() ? " -d DIMS" : "", lacks_parts ? " --levels PARTS" : "");
  lines.emplace_back("its steps", fmt::format("trellis schedule show {} -a {}{}", schedule::name(a.serves.front()),
                                              shell_word(short_form(c)), dims));
  return lines;
}

// Refuses what no request could have, as `trellis schedule show` does: an order of dimensions that there are not, or a
// numbering of other ranks. Without dims, the order or the numbering says how many there are.
void expect_possible(const AlgorithmConfig& c) {
  schedule::Request request{.operation = {.collective = schedule::Collective::all_reduce},
                            .dims = c.dims,
                            .channels = c.channels,
                            .segments = c.segments,
                            .order = c.order,
                            .numbering = c.numbering};
  if (c.dims.empty() && c.numbering.empty()) {
    std::vector<std::int32_t> each(c.order.size());
    std::iota(each.begin(), each.end(), 0);
    if (!std::ranges::is_permutation(c.order, each))
      text::refuse("order {}: expected each of 0 to {} once", fmt::join(c.order, "."), c.order.size() - 1);
    return;
  }
  if (c.dims.empty()) request.dims = {static_cast<schedule::Rank>(c.numbering.size())};
  schedule::check(request);
}

int run(const Options& o) {
  const AlgorithmConfig config = schedule::algorithm_config_named(fmt::format("{}", fmt::join(o.config, " ")));
  expect_possible(config);
  const Lines lines = lines_of(config, schedule::algorithm_named(config.algorithm));
  if (o.json) {
    nlohmann::ordered_json all = {{"config", schedule::text_of(config)}};
    for (const auto& [what, words] : lines) all[what] = words;
    write_output("", json_text(all));
    return 0;
  }
  std::string text = schedule::text_of(config) + "\n";
  for (const auto& [what, words] : lines) text += fmt::format("  {:<12}  {}\n", what, words);
  write_output("", text);
  return 0;
}

const RegisteredCommand explain("schedule explain", "Says in words what an algorithm config means",
                                "trellis schedule explain hierarchical dims=4x4x4x4 channels=4 segments=16\n"
                                "trellis schedule explain \"ring*2/4\"\n"
                                "trellis schedule explain \"hierarchical(mesh,ring)@4x2\" --json",
                                add, run);

}  // namespace
}  // namespace trellis::tools
