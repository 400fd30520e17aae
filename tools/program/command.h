// A command of the program. One file registers it, `trellis <path>` runs it; the shell adds help and error messages.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/program/cli_app.h"

namespace trellis::tools {

struct Command {
  std::string path;      // the words after `trellis`: "schedule list"; its parent "schedule" is registered, too
  std::string summary;   // one line, no full stop
  std::string examples;  // command lines as a user types them, one a line
  // Adds the options to the app and returns what to run once they are parsed. Empty for a group of commands. The
  // function returns the exit status: 0, or 1 when the answer is no.
  std::function<std::function<int()>(CLI::App&)> setup = {};
};

// A command whose options are a struct: `add` binds its fields to options, `run` reads them.
template <class Options>
Command command(std::string path, std::string summary, std::string examples, void (*add)(CLI::App&, Options&),
                int (*run)(const Options&)) {
  return {std::move(path), std::move(summary), std::move(examples), [add, run](CLI::App& app) {
            auto options = std::make_shared<Options>();
            add(app, *options);
            return [options, run] { return run(*options); };
          }};
}

// All registered commands by path, so that a parent comes before its children.
std::vector<Command> commands();

// A constant of this type in a command's file registers the command.
struct RegisteredCommand {
  explicit RegisteredCommand(Command command);
  template <class Options>
  RegisteredCommand(std::string path, std::string summary, std::string examples, void (*add)(CLI::App&, Options&),
                    int (*run)(const Options&))
      : RegisteredCommand(command(std::move(path), std::move(summary), std::move(examples), add, run)) {}
};

}  // namespace trellis::tools
