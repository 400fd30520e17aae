#include "tools/python_commands/python_command.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "ccl/print_to_stderr.h"
#include "tools/program/raw_arguments.h"

namespace trellis::tools {
namespace {

// Adds the package of a build tree, which stands beside the program, to PYTHONPATH.
void find_package(const std::string& command) {
  std::error_code absent;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", absent).parent_path() / "python";
  if (absent || !std::filesystem::exists(beside / "trellis" / command, absent)) return;
  const char* path = std::getenv("PYTHONPATH");
  setenv("PYTHONPATH", (beside.string() + (path != nullptr ? std::string(":") + path : "")).c_str(), 1);
}

bool has_packages(const std::string& python, const std::vector<std::string>& packages) {
  std::string code =
      "import sys; from importlib.util import find_spec as f; sys.exit(not (f('trellis') and f('trellis._native')";
  for (const std::string& package : packages) code += fmt::format(" and f('{}')", package);
  code += "))";
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
    execlp(python.c_str(), python.c_str(), "-c", code.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string named_python() {
  const char* named = std::getenv("TRELLIS_PYTHON");
  return named == nullptr ? "" : named;
}

}  // namespace

std::string python_with(const std::string& command, const std::vector<std::string>& packages) {
  find_package(command);
  std::vector<std::string> candidates{"python3", "python"};
  if (const std::string named = named_python(); !named.empty()) candidates = {named};
  const auto found =
      std::ranges::find_if(candidates, [&](const std::string& python) { return has_packages(python, packages); });
  return found == candidates.end() ? "" : *found;
}

std::string missing_words(const std::string& extra, const std::vector<std::string>& packages) {
  const std::string named = named_python();
  return fmt::format(
      "{} has the packages trellis and {}: pip install 'trellis[{}]', or set TRELLIS_PYTHON to an interpreter that has "
      "them",
      named.empty() ? "neither python3 nor python" : fmt::format("'{}' is no interpreter that", named),
      fmt::join(packages, ", "), extra);
}

int run_python_command(const std::string& command, const std::string& extra, const std::vector<std::string>& packages) {
  const std::string python = python_with(command, packages);
  if (!python.empty()) {
    std::vector<std::string> words{python, "-m", "trellis." + command};
    const std::vector<std::string> typed = typed_words();
    const auto own = std::ranges::find(typed, command);
    words.insert(words.end(), own == typed.end() ? own : own + 1, typed.end());
    if (typed.size() > 1 && typed[1] == "help") words.emplace_back("--help");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(python.c_str(), arguments.data());
  }
  ccl::tell("trellis {}: {}\n", command, missing_words(extra, packages));
  return 2;
}

}  // namespace trellis::tools
