#include "tools/program/command.h"

#include <algorithm>

namespace trellis::tools {
namespace {

std::vector<Command>& registry() {
  static std::vector<Command> all;
  return all;
}

}  // namespace

std::vector<Command> commands() {
  std::vector<Command> sorted = registry();
  std::sort(sorted.begin(), sorted.end(), [](const Command& a, const Command& b) { return a.path < b.path; });
  return sorted;
}

Registered::Registered(Command command) { registry().push_back(std::move(command)); }

}  // namespace trellis::tools
