#include "text/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace trellis::text {
namespace {

// Levenshtein distance: insertions, deletions and replacements of one letter that turn a into b.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t most_letters = 256;  // limit for a word that a user typed
  std::string best;
  if (word.size() > most_letters) return best;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() >= word.size() + fewest) continue;
    // A candidate that takes as many edits as it has letters does not count: any word could become it.
    const std::size_t needed = edits(word, candidate);
    if (needed < fewest && needed < candidate.size()) {
      fewest = needed;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

}  // namespace trellis::text
