#include "launch/remote_shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "ccl/print_to_stderr.h"
#include "net/descriptor.h"
#include "text/refuse.h"

namespace trellis::launch {

std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) c == '\'' ? text.append("'\\''") : text.append(1, c);
  return text + "'";
}

bool is_this_host(const std::string& host) {
  std::array<char, 256> own = {};
  gethostname(own.data(), own.size() - 1);
  return host == "localhost" || host == own.data();
}

std::vector<std::string> words_on_host(const std::string& shell, const std::string& host, const std::string& command) {
  if (is_this_host(host)) return {"sh", "-c", command};
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = shell.find_first_not_of(' ', at)) != std::string::npos;) {
    const std::size_t end = std::min(shell.find(' ', at), shell.size());
    words.push_back(shell.substr(at, end - at));
    at = end;
  }
  words.insert(words.end(), {host, command});
  return words;
}

void become(std::vector<std::string> words, const char* who) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  ccl::tell("{}: {}: {}\n", who, words.front(), std::strerror(errno));
  _exit(127);
}

int exit_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

std::string output_on_host(const std::string& shell, const std::string& host, const std::string& command) {
  const std::vector<std::string> words = words_on_host(shell, host, command);
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), fmt::format("a pipe from host {}", host));
  const net::Descriptor from(ends[0]);
  net::Descriptor to(ends[1]);
  const net::Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), fmt::format("a process for host {}", host));
  if (pid == 0) {
    dup2(nothing.number(), 0);
    dup2(to.number(), 1);
    become(words, "trellis");
  }
  to = net::Descriptor();
  std::string text;
  std::array<char, 1 << 16> bytes;
  for (ssize_t got = 0; (got = read(from.number(), bytes.data(), bytes.size())) != 0;)
    if (got > 0)
      text.append(bytes.data(), static_cast<std::size_t>(got));
    else if (errno != EINTR)
      break;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (const int code = exit_status(status); code != 0)
    text::refuse("host {}: {} ended with status {}", host, words.front(), code);
  return text;
}

}  // namespace trellis::launch
