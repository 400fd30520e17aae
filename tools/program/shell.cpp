#include "tools/program/shell.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>

#include "ccl/tell.h"
#include "text/nearest.h"
#include "tools/program/cli_checks.h"
#include "tools/program/output.h"

namespace trellis::tools {
namespace {

// The parser's tree, and the function that each leaf runs.
struct Tree {
  cli11::App root;
  std::map<const cli11::App*, std::function<int()>> runs;
  std::map<const cli11::App*, std::string> summaries;
  std::deque<CLI::App> commands;  // the same, as commands see them
};

// CLI11 from 2.5 on would wrap what is in lines already.
template <class Formatter>
void keep_lines(Formatter& formatter) {
  if constexpr (requires { formatter.enable_description_formatting(false); }) {
    formatter.enable_description_formatting(false);
    formatter.enable_footer_formatting(false);
  }
}

// Lists commands with their summary only; the rest is in each command's own help.
class Listing : public cli11::Formatter {
 public:
  explicit Listing(const Tree& tree) : tree_(tree) { keep_lines<cli11::Formatter>(*this); }

 private:
  std::string make_subcommand(const cli11::App* command) const override {
    return fmt::format("  {:<{}}{}\n", command->get_name(), column_width_ - 2, tree_.summaries.at(command));
  }

  const Tree& tree_;
};

std::string footer(const std::string& examples) {
  if (examples.empty()) throw std::logic_error("a command without an example");
  std::string text = "\nExamples:\n";
  for (const std::string& line : cli11::detail::split(examples, '\n')) {
    if (!line.empty()) text += "  " + line + "\n";
  }
  return text;
}

void grow(Tree& tree, const Command& command) {
  cli11::App* parent = &tree.root;
  const std::vector<std::string> words = cli11::detail::split(command.path, ' ');
  for (std::size_t i = 0; i + 1 < words.size(); ++i) parent = parent->get_subcommand(words[i]);
  cli11::App* app = parent->add_subcommand(words.back(), command.summary);
  tree.summaries[app] = command.summary;
  app->footer(footer(command.examples));
  if (command.setup) tree.runs[app] = command.setup(tree.commands.emplace_back(*app));
}

const cli11::App* deepest(const cli11::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

// The words that a user types before this app's own arguments: "trellis schedule show".
std::string path_of(const cli11::App* app) {
  const cli11::App* parent = app->get_parent();
  return parent == nullptr ? app->get_name() : path_of(parent) + " " + app->get_name();
}

std::vector<std::string> option_names(const cli11::App* app) {
  std::vector<std::string> names;
  for (const cli11::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> command_names(const cli11::App* app) {
  std::vector<std::string> names;
  for (const cli11::App* child : app->get_subcommands([](const cli11::App*) { return true; })) {
    names.push_back(child->get_name());
  }
  return names;
}

std::string unexpected(const cli11::App* app, const std::string& argument) {
  const bool option = argument.size() > 1 && argument.front() == '-';
  const std::vector<std::string> known = option ? option_names(app) : command_names(app);
  const char* kind = option ? "option" : known.empty() ? "argument" : "command";
  const std::string word = argument.substr(0, option ? argument.find('=') : std::string::npos);
  const std::string suggestion = text::nearest(word, known);
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

// An unknown word is reported before any error that it caused, such as a missing required option that it misspells.
std::string complaint(const cli11::App& root, const cli11::ParseError& error) {
  std::vector<std::string> strangers = root.remaining(true);
  std::erase(strangers, "--");  // what follows it is not checked
  const cli11::App* app = deepest(&root);
  if (!strangers.empty()) return unexpected(app, strangers.front());
  return fmt::format("{}; see `{} --help`", not_a_number(app, error), path_of(app));
}

int fail(int status, std::string message) {
  while (!message.empty() && message.back() == '\n') message.pop_back();
  for (std::size_t at = message.find('\n'); at != std::string::npos; at = message.find('\n', at)) {
    message.replace(at, 1, "; ");
  }
  ccl::tell("trellis: {}\n", message);
  return status;
}

int parse_and_run(Tree& tree, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    tree.root.parse(std::move(arguments));
  } catch (const cli11::CallForHelp&) {
    write_output("", tree.root.help());
    return 0;
  } catch (const cli11::CallForVersion& version) {
    write_output("", std::string(version.what()) + "\n");
    return 0;
  } catch (const cli11::ParseError& error) {
    return fail(2, complaint(tree.root, error));
  }
  const auto run = tree.runs.find(deepest(&tree.root));
  // A command that is a group as well says what there is when it is given nothing.
  const bool bare = run != tree.runs.end() && !command_names(run->first).empty() && run->first->count_all() <= 1;
  if (run == tree.runs.end() || bare) {
    ccl::tell("{}", tree.root.help());
    return 2;
  }
  expect_whole_values_in_range(*run->first);
  const int status = run->second();
  write_output("", "");
  return status;
}

}  // namespace

int run(const std::vector<Command>& commands, const std::string& version, const std::vector<std::string>& arguments) {
  try {
    Tree tree;
    tree.root.name("trellis");
    tree.root.formatter(std::make_shared<Listing>(tree));
    tree.root.description("Collectives for Trainium: written down, proved, priced, run.");
    tree.root.set_version_flag("--version", "trellis " + version, "Print the version and exit");
    tree.root.footer("\nExamples:\n  trellis --help\n  trellis COMMAND --help\n  trellis --version\n");
    for (const Command& command : commands) grow(tree, command);
    return parse_and_run(tree, arguments);
  } catch (const std::invalid_argument& error) {
    return fail(2, error.what());
  } catch (const std::bad_alloc&) {
    return fail(1, "not enough memory for this: a smaller machine or file may do");
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
}

}  // namespace trellis::tools
