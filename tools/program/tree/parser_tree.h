// The parser of the whole command line: a node for each command, with what is known of it.
#pragma once

#include <CLI/CLI.hpp>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/program/command.h"

namespace trellis::tools {

struct ParserTree {
  ParserTree(const std::vector<Command>&, const std::string& version);
  ParserTree(const ParserTree&) = delete;
  ParserTree& operator=(const ParserTree&) = delete;

  cli11::App root;
  std::map<const cli11::App*, std::function<int()>> runs;  // of each command that is not only a group
  std::map<const cli11::App*, std::string> summaries, examples;
  std::deque<CLI::App> commands;  // the same parsers, as commands see them

 private:
  void grow(const Command&);
};

// The words that a user types before this app's own arguments: "trellis schedule show".
std::string path_of(const cli11::App*);

// "--machine", "-m": longer names first.
std::vector<std::string> names_of(const cli11::Option*);
std::vector<std::string> option_names(const cli11::App*);
std::vector<const cli11::App*> children_of(const cli11::App*);
std::vector<std::string> command_names(const cli11::App*);

}  // namespace trellis::tools
