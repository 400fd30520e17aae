// The variables that the project reads of the environment, as docs/environment.md lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trellis::tools {

// TRELLIS_ALGORITHM, ...
const std::vector<std::string>& environment_variables();

// What to say of a variable that nothing reads, but whose name is nearly that of one which is read: it is probably
// misspelt, and would be ignored without a word. Otherwise empty: programs may have variables of their own.
std::string misspelt_variable(std::string_view name);

// Prints misspelt_variable()'s message to standard error for each variable of this process that has one.
void tell_misspelt_variables();

}  // namespace trellis::tools
