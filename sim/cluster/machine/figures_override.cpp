#include "sim/cluster/machine/figures_override.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "net/sha256.h"
#include "text/nearest.h"
#include "text/refuse.h"

namespace trellis::sim {

void replace_figures(MachineSpec& spec, std::string_view file, std::string_view text) {
  const std::string before = spec.figures.text();
  try {
    const Figures own = Figures::read(text, [](std::string_view other) -> std::string_view {
      text::refuse("'like {}': expected figures alone", other);
    });
    for (const auto& [key, figure] : own.all()) {
      if (!spec.figures.has(key)) {
        std::vector<std::string> known;
        for (const auto& [other, theirs] : spec.figures.all()) known.push_back(other);
        text::refuse("line {}: {} has no figure '{}'{}", figure.line, spec.name, key, text::did_you_mean(key, known));
      }
      if (const Dimension is = spec.figures.at(key).dimension; is != figure.dimension)
        text::refuse("line {}: {} is a {}: expected a {}", figure.line, key, name(figure.dimension), name(is));
    }
    // Later lines replace earlier ones.
    spec.figures = Figures::read(fmt::format("like before\n{}", text),
                                 [&](std::string_view) -> std::string_view { return before; });
  } catch (const std::invalid_argument& e) {
    text::refuse("{}: {}", file, e.what());
  }
}

std::string figures_digest(const MachineSpec& spec) {
  std::string text = spec.figures.text();
  for (const TopologyLevel& level : spec.levels)
    text += fmt::format("{} {} {}\n", level.kind, level.name, fmt::join(level.dims, "x"));
  return digest_words(text);
}

std::string digest_words(std::string_view text) { return "sha256 " + net::short_digest(text); }

}  // namespace trellis::sim
