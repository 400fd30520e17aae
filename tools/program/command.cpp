#include "tools/program/command.h"

#include "text/registry.h"

namespace trellis::tools {
namespace {

text::Registry<Command>& registry() {
  static text::Registry<Command> all("command", &Command::path);
  return all;
}

}  // namespace

std::vector<Command> commands() {
  std::vector<Command> all;
  for (const auto& [path, command] : registry().entries()) all.push_back(command);
  return all;
}

RegisteredCommand::RegisteredCommand(Command command) { registry().add(std::move(command)); }

}  // namespace trellis::tools
