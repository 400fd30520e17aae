// The text form of machines: a line of structure each for what is within what, and figures as in every data file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "sim/data.h"
#include "sim/dims_text.h"
#include "sim/machine.h"

namespace trellis::sim {
namespace {

constexpr std::string_view eras = "eras";  // the data file with what all machines of a chip have

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  line = line.substr(0, line.find('#'));
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t first = line.find_first_not_of(" \t\r", at);
    if (first == line.npos) break;
    at = std::min(line.find_first_of(" \t\r", first), line.size());
    words.emplace_back(line.substr(first, at - first));
  }
  return words;
}

// What a file says beside its figures, and these alone.
struct Parts {
  MachineSpec spec;
  std::string figures;
};

void structure(const std::vector<std::string>& words, MachineSpec& spec, bool& levels) {
  const auto complain = [&](const char* form) {
    throw std::invalid_argument(fmt::format("'{}': expected {}", fmt::join(words, " "), form));
  };
  if (words[0] == "chip" || words[0] == "era") {
    if (words.size() != 2) complain("chip NAME, or era NAME");
    (words[0] == "chip" ? spec.chip : spec.era) = words[1];
  } else if (words[0] == "level") {
    if (words.size() != 4) complain("level KIND NAME DIMS");
    if (!levels) spec.levels.clear();
    levels = true;
    if (std::ranges::find(spec.levels, words[2], &Level::name) != spec.levels.end())
      throw std::invalid_argument(fmt::format("a level called '{}' was there before", words[2]));
    spec.levels.push_back({words[1], words[2], dims_of(words[3])});
  } else {
    if (words.size() != 3) complain("cluster KIND NAME");
    spec.cluster = {words[1], words[2], {}};
  }
}

Parts parts_of(std::string_view name, std::string_view text);

// A line that is no figure. True: it is one of structure, and says nothing to figures.
bool read_line(const std::vector<std::string>& words, MachineSpec& spec, bool& levels) {
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
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1, ++number;
    const auto words = words_of(line);
    try {
      const bool figure = words.empty() || line.find('=') != line.npos;
      if (figure || !read_line(words, parts.spec, levels)) parts.figures += line;
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("machine {}: line {}: {}", name, number, e.what()));
    }
    parts.figures += '\n';
  }
  return parts;
}

bool likes_another(std::string_view figures) {
  for (std::size_t at = 0; at < figures.size();) {
    const std::size_t end = std::min(figures.find('\n', at), figures.size());
    const auto words = words_of(figures.substr(at, end - at));
    if (!words.empty() && words[0] == "like") return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

// A machine's figures stand on those of all machines, and these on its chip's.
MachineSpec read_machine(std::string_view name, std::string_view text) {
  Parts parts = parts_of(name, text);
  MachineSpec spec = std::move(parts.spec);
  std::deque<std::string> kept;
  const auto based = [&](std::string figures) -> std::string_view {
    const bool stands = likes_another(figures) || spec.chip.empty();
    return kept.emplace_back(stands ? std::move(figures) : fmt::format("like {}\n{}", eras, figures));
  };
  const Figures::Others others = [&](std::string_view other) -> std::string_view {
    if (other == eras) return kept.emplace_back(fmt::format("like {}\n{}", spec.chip, data_text("machines", eras)));
    if (has_data("machines", other)) return based(parts_of(other, data_text("machines", other)).figures);
    return data_text("chips", other);
  };
  try {
    spec.figures = Figures::read(based(std::move(parts.figures)), others);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("machine {}: {}", name, e.what()));
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
