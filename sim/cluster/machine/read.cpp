// Reads the text form of machines: lines for the structure from inside to outside, and figures as in every data file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <stdexcept>

#include "sim/cluster/machine/dims_text.h"
#include "sim/cluster/machine/machine.h"
#include "sim/hardware/figures/embedded_files.h"
#include "text/nearest.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::string_view eras = "eras";  // the data file with what all machines of a chip have in common

// A file split into its structure and the text of its own figures.
struct Parts {
  MachineSpec spec;
  std::string figures;
};

void structure(const Words& words, MachineSpec& spec, bool& levels) {
  const auto complain = [&](const char* form) { text::refuse("'{}': expected {}", fmt::join(words, " "), form); };
  if (words[0] == "chip" || words[0] == "era") {
    if (words.size() != 2) complain("chip NAME, or era NAME");
    (words[0] == "chip" ? spec.chip : spec.era) = words[1];
  } else if (words[0] == "level") {
    if (words.size() != 4) complain("level KIND NAME DIMS");
    if (!levels) spec.levels.clear();
    levels = true;
    if (std::ranges::find(spec.levels, words[2], &TopologyLevel::name) != spec.levels.end())
      text::refuse("a level called '{}' was there before", words[2]);
    spec.levels.push_back({std::string(words[1]), std::string(words[2]), dims_of(words[3])});
  } else {
    if (words.size() != 3) complain("cluster KIND NAME");
    spec.cluster = {std::string(words[1]), std::string(words[2]), {}};
  }
}

Parts parts_of(std::string_view name, std::string_view text);

// Reads a line that is not a figure. True: it was a line of structure, which Figures does not read.
bool read_line(const Words& words, MachineSpec& spec, bool& levels) {
  if (words.size() == 2 && words[0] == "like") {
    MachineSpec like = parts_of(words[1], data_text("machines", words[1])).spec;
    like.name = spec.name;
    spec = std::move(like);
  }
  if (words[0] != "chip" && words[0] != "era" && words[0] != "level" && words[0] != "cluster") return false;
  structure(words, spec, levels);
  return true;
}

Parts parts_of(std::string_view name, std::string_view text) {
  Parts parts;
  parts.spec.name = name;
  bool levels = false;
  int number = 0;
  for (const std::string_view line : text::split(text, '\n')) {
    ++number;
    const auto words = text::words_before_comment(line);
    try {
      const bool figure = words.empty() || line.substr(0, line.find('#')).find('=') != line.npos;
      if (figure || !read_line(words, parts.spec, levels)) parts.figures += line;
    } catch (const std::invalid_argument& e) {
      text::refuse("machine {}: line {}: {}", name, number, e.what());
    }
    parts.figures += '\n';
  }
  return parts;
}

// The figures of eras in the data file `fitted`, which are fitted to all published records together.
std::string fitted_launches() {
  std::string lines;
  for (const std::string_view line : text::split(data_text("published", "fitted"), '\n'))
    if (line.starts_with("era.")) lines += fmt::format("{}\n", line);
  return lines;
}

bool likes_another(std::string_view figures) {
  for (const std::string_view line : text::split(figures, '\n'))
    if (const auto words = text::words_before_comment(line); !words.empty() && words[0] == "like") return true;
  return false;
}

// Software figures that a machine without a chip may have.
constexpr std::array<std::string_view, 3> software_keys = {"dma.start", "semaphore.latency", "noise.software"};

// Splits the key of an era's figure into "era.NAME" and the rest; none for other keys.
std::optional<std::pair<std::string, std::string>> era_figure(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  if (!key.starts_with("era.") || dot == std::string_view("era").size()) return {};
  return {{key.substr(0, dot), key.substr(dot + 1)}};
}

// All keys that may be looked up: the chip's figures, the fabrics', and those of any era that is named.
std::set<std::string> known_keys(const MachineSpec& spec, const Figures& chip) {
  std::set<std::string> known(software_keys.begin(), software_keys.end());
  for (const auto& [key, figure] : chip.all()) known.insert(key);
  const auto add = [&](const TopologyLevel& level, std::size_t dims) {
    if (level.kind.empty() || level.kind == "cores") return;
    for (const std::string& key : fabric_kind(level.kind).keys(dims)) known.insert(level.name + "." + key);
  };
  for (const TopologyLevel& level : spec.levels) add(level, level.dims.size());
  add(spec.cluster, 1);
  std::set<std::string> parts;
  const std::string text = fmt::format("{}{}", data_text("machines", eras), fitted_launches());
  const Figures shipped = Figures::read(text);
  for (const auto& [key, figure] : shipped.all())
    if (const auto known_part = era_figure(key)) parts.insert(known_part->second);
  for (const auto& [key, figure] : spec.figures.all())
    if (const auto own = era_figure(key))
      for (const std::string& part : parts) known.insert(own->first + "." + part);
  return known;
}

// Throws if a level has the cluster's name, unless it is the last level and of the cluster's kind, as joined() makes
// it: the cluster's links lead from host to host.
void expect_own_cluster(const MachineSpec& spec) {
  if (spec.cluster.name.empty()) return;
  const auto level = std::ranges::find(spec.levels, spec.cluster.name, &TopologyLevel::name);
  if (level == spec.levels.end() || (level + 1 == spec.levels.end() && level->kind == spec.cluster.kind)) return;
  text::refuse("a level and the cluster are both called '{}': expected the last level, of the same kind",
               spec.cluster.name);
}

// Checks only the file's own keys. What it inherits may be for fabrics that it does not have.
void expect_known_keys(const MachineSpec& spec, const Figures& chip) {
  const std::set<std::string> known = known_keys(spec, chip);
  for (const auto& [key, figure] : spec.figures.all()) {
    if (figure.line == 0 || known.contains(key)) continue;
    const std::string meant = text::nearest(key, {known.begin(), known.end()});
    text::refuse("line {}: no machine like this asks for a figure '{}': {}", figure.line, key,
                 meant.empty() ? "expected one of its levels, its cluster, its chip or an era"
                               : fmt::format("did you mean '{}'?", meant));
  }
}

}  // namespace

// A machine's figures override those common to all machines, and these override its chip's.
MachineSpec read_machine(std::string_view name, std::string_view text) {
  Parts parts = parts_of(name, text);
  MachineSpec spec = std::move(parts.spec);
  std::deque<std::string> kept;
  const auto stands_alone = [&](std::string_view figures) { return likes_another(figures) || spec.chip.empty(); };
  const auto based = [&](std::string_view figures) -> std::string_view {
    const std::string like = stands_alone(figures) ? "" : fmt::format("like {}\n", eras);
    return kept.emplace_back(like + std::string(figures));
  };
  const Figures::Others others = [&](std::string_view other) -> std::string_view {
    if (other == eras)
      return kept.emplace_back(fmt::format("like {}\n{}{}", spec.chip, data_text("machines", eras), fitted_launches()));
    if (has_data("machines", other)) return based(parts_of(other, data_text("machines", other)).figures);
    return data_text("chips", other);
  };
  try {
    spec.figures = Figures::read(based(parts.figures), others, stands_alone(parts.figures) ? 1 : 0);
    expect_own_cluster(spec);
    if (!spec.levels.empty()) expect_known_keys(spec, Figures::read(spec.chip.empty() ? "" : others(eras), others));
  } catch (const std::invalid_argument& e) {
    text::refuse("machine {}: {}", name, e.what());
  }
  return spec;
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names = data_names("machines");
  std::erase_if(names, [](const std::string& name) {
    return name == eras || parts_of(name, data_text("machines", name)).spec.levels.empty();
  });
  return names;
}

}  // namespace trellis::sim
