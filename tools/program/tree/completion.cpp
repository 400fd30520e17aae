// trellis completion: what bash, zsh and fish need to complete the program's command line. Their scripts ask the
// program itself, so that they never fall behind it.

#include <algorithm>

#include "schedule/algorithms/algorithm.h"
#include "sim/cluster/machine/machine.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/hardware/figures/embedded_files.h"
#include "text/refuse.h"
#include "tools/program/output.h"
#include "tools/program/tree/parser_tree.h"

namespace trellis::tools {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view bash =
    R"sh(# bash completion of trellis: put it into /usr/share/bash-completion/completions/trellis
_trellis() {
  local line IFS=$'\n'
  COMPREPLY=()
  for line in $(trellis completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null); do
    COMPREPLY+=("$line")
  done
}
complete -o default -o nosort -F _trellis trellis
)sh";

constexpr std::string_view zsh = R"sh(#compdef trellis
# zsh completion of trellis: put it into a folder of fpath as _trellis
_trellis() {
  local -a found
  found=("${(@f)$(trellis completion words -- "${(@)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ -n "${found[1]}" ]]; then
    compadd -V trellis -- "${found[@]}"
  else
    _files
  fi
}
_trellis "$@"
)sh";

constexpr std::string_view fish =
    R"sh(# fish completion of trellis: put it into /usr/share/fish/vendor_completions.d/trellis.fish
function __trellis_words
  set -l words (commandline -opc) (commandline -ct)
  trellis completion words -- $words[2..-1] 2> /dev/null
end
complete -c trellis -a '(__trellis_words)'
)sh";

Words collectives() {
  Words names;
  for (const schedule::Collective c : schedule::collectives()) names.emplace_back(schedule::name(c));
  return names;
}

template <class Map>
Words keys_of(const Map& map) {
  Words names;
  for (const auto& [name, entry] : map) names.push_back(name);
  return names;
}

// The words in the braces of the parser's text for an option's value, such as "TEXT:{nccl,nccom}".
Words choices_of(const cli11::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.rfind('}');
  if (open == type.npos || close == type.npos || close < open) return {};
  return cli11::detail::split(type.substr(open + 1, close - open - 1), ',');
}

// The values that an option takes: its choices, or those that its name stands for, which means the same in every
// command.
Words values_of(const cli11::Option& option) {
  if (const Words choices = choices_of(option); !choices.empty()) return choices;
  const std::string name = option.get_single_name();
  if (name == "machine") return sim::machine_names();
  if (name == "algorithm" || name == "algorithms") return keys_of(schedule::algorithms());
  if (name == "collective" || name == "collectives") return collectives();
  if (name == "chip") return sim::data_names("chips");
  if (name == "program") return keys_of(sim::core::shipped());
  return {};
}

bool takes_a_value(const cli11::Option& option) { return option.get_items_expected_max() > 0; }

// Where the words lead: the command, the option that still wants a value, and how many plain words it was given.
struct Place {
  const cli11::App* command;
  const cli11::Option* wants = nullptr;
  std::size_t plain = 0;
};

Place place_after(const cli11::App& root, const Words& words) {
  Place at{.command = &root};
  for (const std::string& word : words) {
    if (at.wants != nullptr) {
      at.wants = nullptr;
    } else if (word.starts_with("-")) {
      const auto* option = at.command->get_option_no_throw(word.substr(0, word.find('=')));
      if (option != nullptr && takes_a_value(*option) && word.find('=') == word.npos) at.wants = option;
    } else {
      const auto children = children_of(at.command);
      const auto child = std::ranges::find(children, word, [](const cli11::App* a) { return a->get_name(); });
      if (child != children.end())
        at = {.command = *child};
      else
        ++at.plain;
    }
  }
  return at;
}

Words plain_words(const Place& at) {
  std::vector<const cli11::Option*> places;
  for (const cli11::Option* option : at.command->get_options())
    if (option->get_positional() && names_of(option).empty()) places.push_back(option);
  return at.plain < places.size() ? values_of(*places[at.plain]) : Words{};
}

Words candidates(const cli11::App& root, Words words) {
  const std::string begun = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  const bool help = !words.empty() && words.front() == "help";
  if (help) words.erase(words.begin());
  const Place at = place_after(root, words);
  Words all;
  if (at.wants != nullptr) {
    all = values_of(*at.wants);
  } else if (begun.starts_with("-")) {
    all = option_names(at.command);
  } else {
    all = command_names(at.command);
    for (const std::string& word : help ? Words{} : plain_words(at)) all.push_back(word);
    if (at.command == &root && !help) all.emplace_back("help");
  }
  std::erase_if(all, [&](const std::string& word) { return !word.starts_with(begun); });
  return all;
}

struct Options {
  std::string shell;
  Words words;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Prints the script that makes a shell complete commands, options, machines, algorithms and the like:\n"
      "`. <(trellis completion bash)` in ~/.bashrc. `words` is what the scripts ask: it takes the words typed so far\n"
      "after --, the last one unfinished, and prints what it may become, a line each; nothing where a file is meant.");
  app.add_option("shell", o.shell, "bash, zsh, fish, or words")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "words"}));
  app.add_option("typed", o.words, "With words: the words typed so far");
}

int run(const Options& o) {
  if (o.shell != "words") {
    if (!o.words.empty()) text::refuse("{} takes no more words, and '{}' is one", o.shell, o.words.front());
    write_output("", o.shell == "bash" ? bash : o.shell == "zsh" ? zsh : fish);
    return 0;
  }
  const ParserTree tree(commands(), "");
  std::string text;
  for (const std::string& word : candidates(tree.root, o.words)) text += word + "\n";
  write_output("", text);
  return 0;
}

const RegisteredCommand completion("completion", "Makes a shell complete the program's command line",
                                   "trellis completion bash > ~/.local/share/bash-completion/completions/trellis\n"
                                   "trellis completion zsh > _trellis\n"
                                   "trellis completion fish > ~/.config/fish/completions/trellis.fish\n"
                                   "trellis completion words -- sim all_reduce --machine trn2",
                                   add, run);

}  // namespace
}  // namespace trellis::tools
