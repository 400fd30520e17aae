#include "tools/program/run_command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "ccl/print_to_stderr.h"
#include "text/nearest.h"
#include "text/printable.h"
#include "tools/program/cli_checks.h"
#include "tools/program/misspelt_variables.h"
#include "tools/program/output.h"
#include "tools/program/provenance.h"
#include "tools/program/tree/parser_tree.h"

namespace trellis::tools {
namespace {

const cli11::App* deepest(const cli11::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

std::string unexpected(const cli11::App* app, const std::string& argument) {
  const bool option = argument.size() > 1 && argument.front() == '-';
  const std::vector<std::string> known = option ? option_names(app) : command_names(app);
  const char* kind = option ? "option" : known.empty() ? "argument" : "command";
  const std::string word = argument.substr(0, option ? argument.find('=') : std::string::npos);
  if (option && std::ranges::find(known, word) != known.end())  // it stands before the command that has it
    return fmt::format("'{}' is an option of '{}': give it after '{}'", word, path_of(app), app->get_name());
  const bool letter = option && word.size() == 2;  // any other letter would be as good a suggestion
  const std::string suggestion = letter ? "" : text::nearest(word, known);
  const std::string help =
      suggestion.empty() ? fmt::format("see `{} --help`", path_of(app)) : fmt::format("did you mean '{}'?", suggestion);
  return fmt::format("{} has no {} '{}'; {}", path_of(app), kind, word, help);
}

// CLI11's "Could not convert: --ranks = 12x" says neither what is wrong nor what was expected.
std::string not_a_number(const cli11::App* app, const cli11::ParseError& error) {
  const std::string_view said = error.what(), begin = "Could not convert: ", between = " = ";
  const std::size_t at = said.find(between);
  if (!said.starts_with(begin) || at == std::string_view::npos) return std::string(said);
  const std::string name(said.substr(begin.size(), at - begin.size()));
  const cli11::Option* option = app->get_option_no_throw(name);
  const bool whole = option != nullptr && option->get_type_name().find("INT") != std::string::npos;
  return fmt::format("{} {}: expected a {}number, and not too large a one", name, said.substr(at + between.size()),
                     whole ? "whole " : "");
}

// What is wrong with an option or argument of a command above the one that is asked for, which would not see it. Empty:
// none was given.
std::string unseen(const cli11::App* asked) {
  for (const cli11::App* above = asked->get_parent(); above != nullptr; above = above->get_parent())
    for (const cli11::Option* option : above->get_options()) {
      if (option->count() == 0) continue;
      const std::vector<std::string> names = names_of(option);
      const std::string said = fmt::format("'{}' is an {} of '{}'", names.empty() ? option->results()[0] : names[0],
                                           names.empty() ? "argument" : "option", path_of(above));
      const std::string name = asked->get_name(), path = path_of(asked);
      if (asked->get_option_no_throw(option->get_name()) == nullptr)
        return fmt::format("{}, which '{}' doesn't have", said, path);
      return fmt::format("{}, and '{}' doesn't see it: give it after '{}'", said, path, name);
    }
  return "";
}

// An unknown word is reported before any error that it caused, such as a missing required option that it misspells.
std::string complaint(const cli11::App& root, const cli11::ParseError& error) {
  std::vector<std::string> strangers = root.remaining(true);
  std::erase(strangers, "--");  // what follows it is not checked
  const cli11::App* app = deepest(&root);
  if (!strangers.empty()) return unexpected(app, strangers.front());
  if (const std::string lost = unseen(app); !lost.empty()) return lost;
  return fmt::format("{}; see `{} --help`", not_a_number(app, error), path_of(app));
}

int fail(int status, std::string message) {
  while (!message.empty() && message.back() == '\n') message.pop_back();
  for (std::size_t at = message.find('\n'); at != std::string::npos; at = message.find('\n', at)) {
    message.replace(at, 1, "; ");
  }
  ccl::tell("trellis: {}\n", text::printable(message));
  return status;
}

// `trellis help sim` is `trellis sim --help`.
std::vector<std::string> asked_for_help(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  if (std::ranges::find(arguments, "--help") == arguments.end()) arguments.emplace_back("--help");
  return arguments;
}

int parse_and_run(ParserTree& tree, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    tree.root.parse(std::move(arguments));
  } catch (const cli11::CallForHelp&) {
    if (const std::vector<std::string> strangers = tree.root.remaining(true);
        !strangers.empty() && !strangers.front().starts_with("-"))
      return fail(2, unexpected(deepest(&tree.root), strangers.front()));
    write_output("", tree.root.help());
    return 0;
  } catch (const cli11::CallForVersion& version) {
    write_output("", std::string(version.what()) + "\n");
    return 0;
  } catch (const cli11::ParseError& error) {
    return fail(2, complaint(tree.root, error));
  }
  const cli11::App* asked = deepest(&tree.root);
  if (const std::string lost = unseen(asked); !lost.empty()) return fail(2, lost);
  if (asked->get_prefix_command()) {  // words after its own options are passed on: the first of them is no option
    const std::vector<std::string> passed_on = asked->remaining();
    if (!passed_on.empty() && passed_on.front().starts_with("-")) return fail(2, unexpected(asked, passed_on.front()));
  }
  const auto run = tree.runs.find(asked);
  // A command that is a group as well prints its help when it gets no arguments.
  const bool bare = run != tree.runs.end() && !command_names(run->first).empty() && run->first->count_all() <= 1;
  if (run == tree.runs.end() || bare) {
    ccl::tell("{}", tree.root.help());
    return 2;
  }
  expect_plain_numbers(*run->first);
  expect_values(*run->first);
  const int status = run->second();
  write_output("", "");
  return status;
}

}  // namespace

int run(const std::vector<Command>& commands, const std::string& version, const std::vector<std::string>& arguments) {
  try {
    begin_origin(version, arguments);
    tell_misspelt_variables();
    ParserTree tree(commands, version);
    return parse_and_run(tree, asked_for_help(arguments));
  } catch (const std::invalid_argument& error) {
    return fail(2, error.what());
  } catch (const std::bad_alloc&) {
    return fail(1, "not enough memory for this: a smaller machine or file may do");
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
}

}  // namespace trellis::tools
