// Lists the instructions that the simulator knows as a table for people.
#pragma once

#include <string>

namespace trellis::sim::core {

std::string instruction_table();  // Markdown: the text of INSTRUCTIONS.md

}  // namespace trellis::sim::core
