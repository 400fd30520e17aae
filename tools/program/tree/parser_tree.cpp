#include "tools/program/tree/parser_tree.h"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

namespace trellis::tools {
namespace {

// Stops CLI11, from 2.5 on, from wrapping texts that are divided into lines already.
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
  explicit Listing(const ParserTree& tree) : tree_(tree) { keep_lines<cli11::Formatter>(*this); }

 private:
  std::string make_subcommand(const cli11::App* command) const override {
    return fmt::format("  {:<{}}{}\n", command->get_name(), column_width_ - 2, tree_.summaries.at(command));
  }

  const ParserTree& tree_;
};

std::string footer(const std::string& examples) {
  if (examples.empty()) throw std::logic_error("a command without an example");
  std::string text = "\nExamples:\n";
  for (const std::string& line : cli11::detail::split(examples, '\n')) {
    if (!line.empty()) text += "  " + line + "\n";
  }
  return text;
}

constexpr const char* usual_examples =
    "trellis help COMMAND\n"
    "trellis COMMAND --help\n"
    "trellis --version";

}  // namespace

ParserTree::ParserTree(const std::vector<Command>& all, const std::string& version) {
  root.name("trellis");
  root.formatter(std::make_shared<Listing>(*this));
  root.description("Collectives for Trainium: written down, proved, priced, run.");
  root.set_version_flag("--version", "trellis " + version, "Print the version and exit");
  root.require_subcommand(0, 1);  // and so it is of each command: a second one would be parsed and not run
  root.footer(footer(usual_examples));
  examples[&root] = usual_examples;
  for (const Command& command : all) grow(command);
}

void ParserTree::grow(const Command& command) {
  cli11::App* parent = &root;
  const std::vector<std::string> words = cli11::detail::split(command.path, ' ');
  for (std::size_t i = 0; i + 1 < words.size(); ++i) parent = parent->get_subcommand(words[i]);
  cli11::App* app = parent->add_subcommand(words.back(), command.summary);
  summaries[app] = command.summary;
  examples[app] = command.examples;
  app->footer(footer(command.examples));
  if (command.setup) runs[app] = command.setup(commands.emplace_back(*app));
}

std::string path_of(const cli11::App* app) {
  const cli11::App* parent = app->get_parent();
  return parent == nullptr ? app->get_name() : path_of(parent) + " " + app->get_name();
}

std::vector<std::string> names_of(const cli11::Option* option) {
  std::vector<std::string> names;
  for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  return names;
}

std::vector<std::string> option_names(const cli11::App* app) {
  std::vector<std::string> names;
  for (const cli11::Option* option : app->get_options())
    for (const std::string& name : names_of(option)) names.push_back(name);
  return names;
}

std::vector<const cli11::App*> children_of(const cli11::App* app) {
  return app->get_subcommands([](const cli11::App*) { return true; });
}

std::vector<std::string> command_names(const cli11::App* app) {
  std::vector<std::string> names;
  for (const cli11::App* child : children_of(app)) names.push_back(child->get_name());
  return names;
}

}  // namespace trellis::tools
