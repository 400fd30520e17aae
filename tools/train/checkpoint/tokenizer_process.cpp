#include "tools/train/checkpoint/tokenizer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

#include "tools/python_commands/python_command.h"

namespace trellis::tools {
namespace {

using nlohmann::json;

bool has_file(const std::filesystem::path& folder, const char* name) {
  std::error_code absent;
  return std::filesystem::exists(folder / name, absent);
}

std::array<int, 2> pipe_of_process() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  return ends;
}

}  // namespace

bool has_tokenizer(const std::filesystem::path& folder) {
  return has_file(folder, "tokenizer.json") || has_file(folder, "tokenizer.model") || has_file(folder, "spiece.model");
}

TokenizerProcess::TokenizerProcess(const std::filesystem::path& folder) : folder_(folder) {
  const std::string package = has_file(folder, "tokenizer.json") ? "tokenizers" : "sentencepiece";
  const std::string python = python_with("train", {package});
  if (python.empty())
    throw std::runtime_error(fmt::format("{}: its tokenizer needs {}", folder_, missing_words("train", {package})));
  start(python);
  const json begins = answer();
  size_ = begins.at("size"), ends_ = begins.at("ends").get<std::vector<std::int32_t>>();
}

void TokenizerProcess::start(const std::string& python) {
  const std::array<int, 2> there = pipe_of_process(), back = pipe_of_process();
  std::signal(SIGPIPE, SIG_IGN);  // a missing answer shows that the process has ended
  child_ = fork();
  if (child_ == 0) {
    dup2(there[0], STDIN_FILENO), dup2(back[1], STDOUT_FILENO);
    execlp(python.c_str(), python.c_str(), "-m", "trellis.train", "tokens", folder_.c_str(), nullptr);
    _exit(127);
  }
  close(there[0]), close(back[1]);
  to_.reset(fdopen(there[1], "w")), from_.reset(fdopen(back[0], "r"));
  if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
}

TokenizerProcess::~TokenizerProcess() {
  to_.reset();  // the process ends at the end of its input
  int status = 0;
  if (child_ > 0) waitpid(child_, &status, 0);
}

json TokenizerProcess::answer() {
  std::string line;
  for (int c = std::fgetc(from_.get()); c != EOF && c != '\n'; c = std::fgetc(from_.get()))
    line += static_cast<char>(c);
  json said = json::parse(line, nullptr, false);
  if (said.is_discarded()) throw std::runtime_error(fmt::format("{}: the tokenizer's process ended", folder_));
  if (said.contains("error")) throw std::runtime_error(said["error"].get<std::string>());
  return said;
}

json TokenizerProcess::asked(const json& question) {
  std::fputs((question.dump(-1, ' ', true, json::error_handler_t::replace) + "\n").c_str(), to_.get());
  std::fflush(to_.get());
  return answer();
}

std::vector<std::int32_t> TokenizerProcess::prompt(const std::string& text) {
  return asked({{"text", text}}).at("tokens").get<std::vector<std::int32_t>>();
}

std::string TokenizerProcess::text(std::span<const std::int32_t> tokens) {
  return asked({{"tokens", std::vector<std::int32_t>(tokens.begin(), tokens.end())}}).at("text").get<std::string>();
}

}  // namespace trellis::tools
