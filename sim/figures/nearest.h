// Guesses the word that the user meant by a misspelt one.
#pragma once

#include <string>
#include <vector>

namespace trellis::sim {

// The known word with the fewest edits to `word`; empty if none is close enough to be a typo.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace trellis::sim
