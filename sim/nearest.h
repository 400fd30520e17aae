// The word a user probably meant.
#pragma once

#include <string>
#include <vector>

namespace trellis::sim {

// The known word with the fewest edits to `word`; empty when none is near enough to be a slip.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace trellis::sim
