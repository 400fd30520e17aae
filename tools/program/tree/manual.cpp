// trellis manual: the manual pages, made from what --help says.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "text/words.h"
#include "tools/program/output.h"
#include "tools/program/provenance.h"
#include "tools/program/tree/parser_tree.h"

namespace trellis::tools {
namespace {

// For the text of a page: a backslash, a minus, and a dot or an apostrophe at a line's beginning mean something there.
std::string roff(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    begins = c == '\n';
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }

// The text with its lines unchanged, for examples and tables.
std::string kept(std::string_view text) { return ".nf\n" + roff(text) + "\n.fi\n"; }

// Sentences are filled to the reader's width; indented lines are kept.
std::string prose(std::string_view text) {
  std::string out;
  bool keeps = false;
  for (const std::string_view line : text::split(text, '\n')) {
    const bool indented = line.starts_with(' ');
    if (indented != keeps && !line.empty()) {
      out += indented ? ".nf\n" : ".fi\n";
      keeps = indented;
    }
    out += line.empty() ? ".PP\n" : roff(line) + "\n";
  }
  return keeps ? out + ".fi\n" : out;
}

std::string page_name(const cli11::App* app) {
  std::string name = path_of(app);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string option_text(const cli11::Option& option) {
  std::string names;
  for (const std::string& name : names_of(&option)) names += (names.empty() ? "" : ", ") + bold(name);
  if (names.empty()) names = bold(option.get_single_name());
  std::string more = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  if (more == "TEXT") more = "";
  if (!option.get_default_str().empty())
    more += fmt::format("{}[{}]", more.empty() ? "" : " ", option.get_default_str());
  return fmt::format(".TP\n{}{}{}\n{}\n", names, more.empty() ? "" : " ", roff(more), roff(option.get_description()));
}

std::string usage(const cli11::App* app, bool group, bool runs) {
  std::string text = bold(path_of(app));
  for (const cli11::Option* option : app->get_options())
    if (option->get_positional() && names_of(option).empty())
      text += (option->get_required() ? " \\fI" : " [\\fI") + roff(option->get_single_name()) +
              (option->get_required() ? "\\fR" : "\\fR]");
  text += " [\\fIOPTIONS\\fR]\n";
  if (!group) return text;
  const std::string commands = bold(path_of(app)) + " \\fICOMMAND\\fR ...\n";
  return runs ? text + ".br\n" + commands : commands;
}

std::string section(const char* title, const std::string& text) {
  return text.empty() ? "" : fmt::format(".SH {}\n{}", title, text);
}

std::string page_of(const ParserTree& tree, const cli11::App* app, const std::string& program,
                    const std::string& date) {
  const auto summary = tree.summaries.find(app);
  const std::string about = summary == tree.summaries.end() ? app->get_description() : summary->second;
  const auto children = children_of(app);
  std::string options, words, commands, see = bold("trellis") + "(1)";
  for (const cli11::Option* option : app->get_options())
    (names_of(option).empty() ? words : options) += option_text(*option);
  for (const cli11::App* child : children) {
    commands += fmt::format(".TP\n{}\n{}\n", bold(child->get_name()), roff(tree.summaries.at(child)));
    see += ", " + bold(page_name(child)) + "(1)";
  }
  std::string text =
      fmt::format(".TH \"{}\" 1 \"{}\" \"{}\" \"Trellis\"\n.nh\n.ad l\n", page_name(app), date.substr(0, 10), program);
  text += section("NAME", fmt::format("{} \\- {}\n", roff(page_name(app)), roff(about)));
  text += section("SYNOPSIS", usage(app, !children.empty(), tree.runs.contains(app)));
  if (app->get_description() != about) text += section("DESCRIPTION", prose(app->get_description()));
  text += section("COMMANDS", commands) + section("WORDS", words) + section("OPTIONS", options);
  text += section("EXAMPLES", kept(tree.examples.at(app)));
  text += section("EXIT STATUS",
                  ".TP\n0\ndone\n.TP\n1\nthe answer is no, or the system failed: a missing file, a full disk\n"
                  ".TP\n2\nthe command line is wrong, or a value in it\n");
  return text + section("SEE ALSO", see + "\n");
}

struct Options {
  std::string folder;
};

void add(CLI::App& app, Options& o) {
  app.description("Writes a manual page for the program and for each command, in roff, into a folder that it makes.");
  app.add_option("folder", o.folder, "Where the pages go: .../share/man/man1")->required();
}

int run(const Options& o) {
  std::string program = "trellis", date;
  for (const auto& [name, value] : origin()) {
    if (name == "program") program = value;
    if (name == "date") date = value;
  }
  const ParserTree tree(commands(), "");
  std::filesystem::create_directories(o.folder);
  const auto write = [&](const cli11::App* app) {
    write_output(fmt::format("{}/{}.1", o.folder, page_name(app)), page_of(tree, app, program, date));
  };
  write(&tree.root);
  for (const auto& [app, summary] : tree.summaries) write(app);
  write_output("", fmt::format("{} pages in {}\n", tree.summaries.size() + 1, o.folder));
  return 0;
}

const RegisteredCommand manual("manual", "Writes the manual pages", "trellis manual ~/.local/share/man/man1", add, run);

}  // namespace
}  // namespace trellis::tools
