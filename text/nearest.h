// Guesses the word that the user meant by a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trellis::text {

// The known word with the fewest edits to `word`; empty if none is close enough to be a typo.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// The same for the end of an error message: "; did you mean 'ring'?", or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace trellis::text
