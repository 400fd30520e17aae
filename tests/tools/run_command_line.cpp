#include "tools/program/run_command_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>

#include "tests/folder.h"
#include "tools/program/output_option.h"

namespace trellis::tools {
namespace {

struct Throwing {
  std::string what;
};

void add_throwing(CLI::App& app, Throwing& options) {
  app.add_option("--what", options.what, "Which exception")->required();
}

int throw_it(const Throwing& options) {
  if (options.what == "mistake") throw std::invalid_argument("ranks = -1:\nit must be positive\n");
  if (options.what == "world") throw std::system_error(ENOENT, std::generic_category(), "cannot read 'x'");
  if (options.what == "bug") throw std::logic_error("impossible");
  return options.what == "no" ? 1 : 0;
}

struct Ran {
  int status;
  std::string error;
};

Ran run_with(const std::vector<std::string>& arguments) {
  const std::vector<Command> commands = {
      {.path = "group", .summary = "A group", .examples = "trellis group leaf"},
      command("group leaf", "A leaf", "trellis group leaf --what no", add_throwing, throw_it)};
  testing::internal::CaptureStderr();
  const int status = run(commands, "1.2.3", arguments);
  return {status, testing::internal::GetCapturedStderr()};
}

TEST(Shell, TheStatusOfACommandIsTheStatusOfTheProgram) {
  EXPECT_EQ(run_with({"group", "leaf", "--what", "yes"}).status, 0);
  EXPECT_EQ(run_with({"group", "leaf", "--what", "no"}).status, 1);
}

TEST(Shell, AnExceptionIsOneLineAndAStatus) {
  const Ran mistake = run_with({"group", "leaf", "--what", "mistake"});
  EXPECT_EQ(mistake.status, 2);
  EXPECT_EQ(mistake.error, "trellis: ranks = -1:; it must be positive\n");
  const Ran world = run_with({"group", "leaf", "--what", "world"});
  EXPECT_EQ(world.status, 1);
  EXPECT_EQ(world.error, "trellis: cannot read 'x': No such file or directory\n");
  EXPECT_EQ(run_with({"group", "leaf", "--what", "bug"}).status, 1);
}

// From 2.4 on, CLI11 refuses an argument with an option's name, and the program would not start.
TEST(Shell, NoArgumentIsNamedAsAnOptionOfItsCommand) {
  int arguments = 0;
  for (const Command& c : commands()) {
    if (!c.setup) continue;
    CLI::App app;
    c.setup(app);
    std::set<std::string> options;
    for (const cli11::Option* option : app.whole().get_options())
      options.insert(option->get_lnames().begin(), option->get_lnames().end());
    for (const cli11::Option* option : app.whole().get_options()) {
      if (!option->get_positional()) continue;
      ++arguments;
      EXPECT_FALSE(options.contains(option->get_name(true))) << c.path << ": " << option->get_name(true);
    }
  }
  EXPECT_GT(arguments, 20);
}

struct Writing {
  std::string output;
};
int runs = 0;

void add_writing(CLI::App& app, Writing& options) {
  app.add_option("-o,--output", options.output, "Where")->check(output_file());
}

int count_run(const Writing&) {
  ++runs;
  return 0;
}

TEST(Shell, AFileThatCannotBeWrittenIsToldBeforeTheWork) {
  const std::vector<Command> commands = {command("leaf", "A leaf", "trellis leaf", add_writing, count_run)};
  const Folder folder;
  const std::string there = folder.path() / "x", absent = folder.path() / "none" / "x";
  runs = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(commands, "1.2.3", {"leaf", "-o", absent}), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trellis: cannot write '" + absent + "': No such file or directory\n");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(run(commands, "1.2.3", {"leaf", "--output=" + there}), 0);
  EXPECT_EQ(run(commands, "1.2.3", {"leaf", "-o", "-"}), 0);
  EXPECT_EQ(run(commands, "1.2.3", {"leaf"}), 0);
  EXPECT_EQ(runs, 3);
  EXPECT_FALSE(std::filesystem::exists(there));  // the command has not written it
}

TEST(Shell, AnEmptyValueIsRefusedBeforeTheWork) {
  const std::vector<Command> commands = {command("leaf", "A leaf", "trellis leaf", add_writing, count_run)};
  runs = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(commands, "1.2.3", {"leaf", "-o", ""}), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "trellis: -o,--output '': expected a value\n");
  EXPECT_EQ(runs, 0);
}

TEST(Shell, AMisspeltRequiredOptionIsNamedRatherThanTheMissingOne) {
  const Ran ran = run_with({"group", "leaf", "--waht", "no"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.error, "trellis: trellis group leaf has no option '--waht'; did you mean '--what'?\n");
}

TEST(Shell, AMissingOptionIsNamed) {
  const Ran ran = run_with({"group", "leaf"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.error, "trellis: --what is required; see `trellis group leaf --help`\n");
}

TEST(Shell, AMisspeltCommandIsSuggested) {
  EXPECT_EQ(run_with({"gruop"}).error, "trellis: trellis has no command 'gruop'; did you mean 'group'?\n");
  EXPECT_EQ(run_with({"group", "laef", "--what", "no"}).error,
            "trellis: trellis group has no command 'laef'; did you mean 'leaf'?\n");
  EXPECT_EQ(run_with({"group", "leaf", "--what", "no", "more"}).error,
            "trellis: trellis group leaf has no argument 'more'; see `trellis group leaf --help`\n");
}

struct Above {
  std::string file;
  std::vector<std::string> set;
  bool keys = false;
};

void add_above(CLI::App& app, Above& options) {
  app.add_option("file", options.file, "Which");
  app.add_option("--set", options.set, "Changes a key");
  app.add_flag("--keys", options.keys, "Lists the keys");
}

void add_below(CLI::App& app, Above& options) {
  app.add_option("file", options.file, "Which")->required();
  app.add_option("--set", options.set, "Changes a key");
}

int count_above(const Above&) {
  ++runs;
  return 0;
}

// Of a command that runs itself and has another below it.
Ran run_nested(const std::vector<std::string>& arguments) {
  const std::vector<Command> commands = {command("up", "Above", "trellis up", add_above, count_above),
                                         command("up down", "Below", "trellis up down", add_below, count_above)};
  runs = 0;
  testing::internal::CaptureStderr();
  const int status = run(commands, "1.2.3", arguments);
  return {status, testing::internal::GetCapturedStderr()};
}

TEST(Shell, AnOptionOfACommandAboveIsRefusedWhereTheCommandBelowWouldNotSeeIt) {
  const std::string no_set =
      "trellis: '--set' is an option of 'trellis up', and 'trellis up down' doesn't see it: give it after 'down'\n";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"up", "--set", "a=b", "down", "x"}, {"up", "--set", "a=b", "down"}}) {
    const Ran ran = run_nested(words);
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.error, no_set);
    EXPECT_EQ(runs, 0);
  }
  EXPECT_EQ(run_nested({"up", "--keys", "down", "x"}).error,
            "trellis: '--keys' is an option of 'trellis up', which 'trellis up down' doesn't have\n");
  EXPECT_EQ(
      run_nested({"up", "y", "down", "x"}).error,
      "trellis: 'y' is an argument of 'trellis up', and 'trellis up down' doesn't see it: give it after 'down'\n");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"up", "--set", "a=b", "x"},
                                                {"up", "--keys"},
                                                {"up", "down", "--set", "a=b", "x"},
                                                {"up", "down", "x"}}) {
    EXPECT_EQ(run_nested(words).status, 0) << words[1];
    EXPECT_EQ(runs, 1);
  }
}

TEST(Shell, AnOptionBeforeTheCommandThatHasItIsToldItsPlace) {
  const Ran ran = run_nested({"--set=a=b", "up", "down", "x"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.error, "trellis: '--set' is an option of 'trellis up down': give it after 'down'\n");
  EXPECT_EQ(run_nested({"--file", "up", "x"}).error,
            "trellis: trellis up has no option '--file'; see `trellis up --help`\n");
}

TEST(Shell, ACommandAfterAnotherIsRefused) {
  for (const char* second : {"up", "down"}) {
    const Ran ran = run_nested({"up", "down", "x", second});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.error,
              fmt::format("trellis: trellis up down has no argument '{}'; see `trellis up down --help`\n", second));
    EXPECT_EQ(runs, 0);
  }
}

TEST(Shell, ACommandWithoutExamplesIsRefused) {
  EXPECT_EQ(run({{.path = "bare", .summary = "No examples", .examples = ""}}, "1.2.3", {"bare"}), 1);
}

}  // namespace
}  // namespace trellis::tools
