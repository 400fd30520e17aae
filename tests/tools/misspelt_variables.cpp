// The environment's variables: which ones there are, and which names are reported as misspelt.
#include "tools/program/misspelt_variables.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace trellis::tools {
namespace {

TEST(Environment, HasTheVariablesOfTheDocumentation) {
  std::ifstream page(TRELLIS_SOURCE_DIR "/docs/environment.md");
  const std::regex row("^\\| `(TRELLIS_\\w+)`.*");
  std::vector<std::string> documented;
  std::smatch found;
  for (std::string line; std::getline(page, line);)
    if (std::regex_match(line, found, row)) documented.push_back(found[1]);
  EXPECT_EQ(environment_variables(), documented);
}

TEST(Environment, TellsOfAMisspeltName) {
  EXPECT_EQ(misspelt_variable("TRELLIS_TIMEOT"),
            "nothing reads the variable 'TRELLIS_TIMEOT'; did you mean 'TRELLIS_TIMEOUT'?");
  EXPECT_NE(misspelt_variable("TRELLIS_DEVCE"), "");
}

TEST(Environment, LeavesOtherNamesAlone) {
  for (const char* name :
       {"PATH", "TRELLIS", "TRELLIS_TIMEOUT", "TRELLIS_SOURCE_DIR", "TRELLIS_BINARY_DIR", "TRELLIS_UNITY",
        "TRELLIS_VENV", "TRELLIS_BUILD", "TRELLIS_SWEEP_RANKS", "TRELLIS_SOAK_SEED", "TRELLIS_MY_OWN"})
    EXPECT_EQ(misspelt_variable(name), "") << name;
}

}  // namespace
}  // namespace trellis::tools
